/**
 * What is told of an inference request: where it spends its time between the gateway and its engines and which workers were tried
 * (its trace), what its span says of it, in names of the GenAI semantic conventions and our own for decisions and without content,
 * and what Prometheus counts of it once it has ended.
 */
import type { Catalog } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import { dollarsOf } from "../base/money.ts"
import {
  type Attributes,
  type Metrics,
  type Span,
  activeSpan,
  durationBucketsSeconds,
} from "../base/telemetry.ts"
import type { GenerateWork } from "../engine/engine.ts"
import type { SequenceRecord } from "../store/journal/record.ts"

interface TracedAttempt {
  readonly region: string
  /** `success`, the code of the error, or `abandoned` where the request ended before the worker answered. */
  readonly result: string
  readonly ms: number
}

type Phase = "queue" | "route" | "engine"

/** A record is bounded; more attempts than this would need several pieces of work that all fail. */
const attemptsMax = 8

/** Phases that overlap, as with several answers to one prompt, count once: a phase is never longer than the request. */
export class RequestTrace {
  /** Of the request; its attempts at workers are children of it. Undefined where nothing is traced. */
  readonly span: Span | undefined
  readonly #clock: Clock
  readonly #phases: Record<Phase, Stopwatch> = {
    queue: new Stopwatch(),
    route: new Stopwatch(),
    engine: new Stopwatch(),
  }
  readonly #attempts: TracedAttempt[] = []
  #answerBeganMs: number | null = null

  readonly #spans: Partial<Record<Phase, Span>> = {}

  constructor(clock: Clock, span?: Span) {
    this.#clock = clock
    this.span = span
  }

  enter(phase: Phase): void {
    const hasBegun = this.#phases[phase].enter(this.#clock.monotonicMs())
    // Attempts have spans of their own: an engine is entered for every token.
    if (hasBegun && this.span && phase !== "engine") this.#spans[phase] = this.span.child(phase)
  }

  leave(phase: Phase): void {
    const isOver = this.#phases[phase].leave(this.#clock.monotonicMs())
    if (isOver) this.#spans[phase]?.end()
  }

  add(attempt: TracedAttempt): void {
    if (this.#attempts.length < attemptsMax) this.#attempts.push({ ...attempt, ms: rounded(attempt.ms) })
  }

  /** A worker sent the first part of the answer, or all of it. */
  begunToAnswer(): void {
    this.#answerBeganMs ??= this.#clock.nowMs()
  }

  /** Unix milliseconds; null when no worker has answered. */
  get answerBeganMs(): number | null {
    return this.#answerBeganMs
  }

  get attempts(): readonly TracedAttempt[] {
    return this.#attempts
  }

  /** Null when the request never came to this phase. */
  msIn(phase: Phase): number | null {
    const ms = this.#phases[phase].ms(this.#clock.monotonicMs())
    return ms === null ? null : rounded(ms)
  }
}

/** Decisions take milliseconds, so their parts need fractions; more digits than these would be noise. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100

/** Adds up time in which at least one piece of work runs. */
class Stopwatch {
  #running = 0
  #sinceMs = 0
  #totalMs = 0
  #isUsed = false

  /** Whether it stood still before. */
  enter(nowMs: number): boolean {
    this.#isUsed = true
    if (this.#running++ > 0) return false
    this.#sinceMs = nowMs
    return true
  }

  /** Whether it stands still now. */
  leave(nowMs: number): boolean {
    if (--this.#running > 0) return false
    this.#totalMs += nowMs - this.#sinceMs
    return true
  }

  ms(nowMs: number): number | null {
    if (!this.#isUsed) return null
    return this.#totalMs + (this.#running > 0 ? nowMs - this.#sinceMs : 0)
  }
}

/** Others are decisions. */
const generative: Readonly<Record<string, string>> = {
  responses: "chat",
  responses_ws: "chat",
  compact: "chat",
  chat_completions: "chat",
  completions: "text_completion",
  messages: "chat",
  embeddings: "embeddings",
}

const operationOf = (callSource: string): string => generative[callSource] ?? "decide"

/** Undefined where nothing is traced. */
export const beginSequenceSpan = (callSource: string): Span | undefined =>
  activeSpan()?.child(operationOf(callSource))

interface SpanFacts {
  readonly branches: number
  /** False: the model is only what the request named, which is no name for a span. */
  readonly isModelKnown: boolean
}

export function endSequenceSpan(
  span: Span,
  record: SequenceRecord,
  { branches, isModelKnown }: SpanFacts,
): void {
  const operation = operationOf(record.call_source)
  span.rename(isModelKnown ? `${operation} ${record.model}` : operation)
  span.set({
    "umpire.sequence_id": record.seq_id,
    "umpire.organization_id": record.organization_id,
    "umpire.call_source": record.call_source,
    "umpire.region": record.region,
    ...ofModel(operation, record),
    ...(operation === "decide" ? ofDecision(record, branches) : {}),
  })
  if (record.error_code !== null) span.fail(record.error_code)
  span.end()
}

function ofModel(operation: string, record: SequenceRecord): Attributes {
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": "umpire",
    "gen_ai.request.model": record.virtual_model ?? record.model,
    "gen_ai.response.model": record.result === "success" ? record.model : null,
    "umpire.language": record.language ?? null,
    // The convention counts cached ones among them.
    "gen_ai.usage.input_tokens": record.input_tokens + record.cached_input_tokens,
    "gen_ai.usage.cache_read.input_tokens": record.cached_input_tokens,
    "gen_ai.usage.output_tokens": operation === "embeddings" ? null : record.output_tokens,
    "gen_ai.response.finish_reasons": record.stop_reason === null ? null : [record.stop_reason],
  }
}

function ofDecision(record: SequenceRecord, branches: number): Attributes {
  return {
    "umpire.decision.questions": record.questions ?? null,
    "umpire.decision.branches": branches,
    "umpire.decision.abstained": record.abstained ?? null,
    "umpire.decision.question_set": record.question_set ?? null,
  }
}

/** What a request to write asks for, in the names of the conventions. Texts that end it are content, and left out. */
export function requestAttributes(
  { sampling, format, outputTokensMax, effort }: GenerateWork,
  count: number,
): Attributes {
  return {
    "gen_ai.request.max_tokens": outputTokensMax,
    "gen_ai.request.temperature": sampling.temperature,
    "gen_ai.request.top_p": sampling.topP,
    "gen_ai.request.seed": sampling.seed,
    "gen_ai.request.frequency_penalty": sampling.frequencyPenalty === 0 ? null : sampling.frequencyPenalty,
    "gen_ai.request.presence_penalty": sampling.presencePenalty === 0 ? null : sampling.presencePenalty,
    "gen_ai.request.choice.count": count === 1 ? null : count,
    "gen_ai.request.reasoning.level": effort,
    "gen_ai.output.type": format.kind === "text" ? "text" : "json",
  }
}

/** What a record does not hold. */
interface FinishedDetails {
  /** Branches that were scored; zero where nothing was. */
  readonly branches: number
  /** Unix milliseconds at which a worker began to answer; null when none did. */
  readonly answerBeganMs: number | null
}

export type ObserveFinished = (record: SequenceRecord, details: FinishedDetails) => void

/** Most requests find a slot at once. */
const queueBucketsSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30]
const millisecondsPerSecond = 1_000
/** What a request sends is no label: anyone could fill the memory with names. */
const otherModel = "other"

export function createInferenceMetrics(metrics: Metrics, catalog: Pick<Catalog, "find">): ObserveFinished {
  const open = seriesOf(metrics)
  const known = new Map<string, ReturnType<typeof open>>()
  return (record, details) => {
    const isSku = catalog.find(record.model)?.sku === record.model
    const model = isSku ? record.model : otherModel
    const key = `${record.call_source} ${model}`
    let observe = known.get(key)
    if (!observe) known.set(key, (observe = open(model, record.call_source)))
    observe(record, details)
  }
}

function seriesOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const counts = countersOf(metrics)
  const durations = durationsOf(metrics)
  return (model, source) => {
    const count = counts(model, source)
    const time = durations(model, source)
    return (record, details) => {
      count(record, details)
      time(record, details)
    }
  }
}

function countersOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const requests = metrics.counters(
    "umpire_requests_total",
    "Inference requests that ended, by result: success, error (also refusals) or cancelled.",
  )
  const errors = metrics.counters("umpire_request_errors_total", "Failed inference requests by error code.")
  const tokens = metrics.counters(
    "umpire_tokens_total",
    "Tokens charged: input (without cached ones), cached_input and output.",
  )
  const cost = metrics.counters("umpire_cost_dollars_total", "What requests were charged, in USD.")
  const questions = metrics.counters("umpire_decisions_total", "Questions that were answered.")
  const branches = metrics.counters("umpire_decision_branches_total", "Branches that were scored.")
  const abstained = metrics.counters(
    "umpire_decision_abstentions_total",
    "Questions that sets abstained from.",
  )
  return (model, source) => {
    const byModel = { model, call_source: source }
    const ofType = (type: string) => tokens({ ...byModel, type })
    const [input, cachedInput, output] = [ofType("input"), ofType("cached_input"), ofType("output")]
    const charge = cost(byModel)
    const [asked, scored, abstain] = [questions(byModel), branches(byModel), abstained(byModel)]
    const results = {
      success: requests({ ...byModel, result: "success" }),
      error: requests({ ...byModel, result: "error" }),
      cancelled: requests({ ...byModel, result: "cancelled" }),
    }
    return (record, details) => {
      results[record.result]()
      if (record.error_code !== null) errors({ ...byModel, error_code: record.error_code })()
      input(record.input_tokens)
      cachedInput(record.cached_input_tokens)
      output(record.output_tokens)
      charge(dollarsOf(record.cost_ticks))
      if (record.result !== "success" || !record.questions) return
      asked(record.questions)
      scored(details.branches)
      abstain(record.abstained ?? 0)
    }
  }
}

function durationsOf(metrics: Metrics): (model: string, source: string) => ObserveFinished {
  const requests = metrics.histograms(
    "umpire_request_duration_seconds",
    "Time of an inference request, from its head to the end of its answer.",
    durationBucketsSeconds,
  )
  const firstTokens = metrics.histograms(
    "umpire_time_to_first_token_seconds",
    "Time from the head of a request to the first token that a model wrote for it.",
    durationBucketsSeconds,
  )
  const queues = metrics.histograms(
    "umpire_queue_duration_seconds",
    "Time that a request waited for a slot at a worker.",
    queueBucketsSeconds,
  )
  const engines = metrics.histograms(
    "umpire_engine_duration_seconds",
    "Time that engines worked on a request.",
    durationBucketsSeconds,
  )
  return (model, source) => {
    const labels = { model, call_source: source }
    const whole = requests(labels)
    const queue = queues(labels)
    const engine = engines(labels)
    return (record, { answerBeganMs }) => {
      whole(record.seq_duration_ms / millisecondsPerSecond)
      if (typeof record.queue_ms === "number") queue(record.queue_ms / millisecondsPerSecond)
      if (typeof record.engine_ms === "number") engine(record.engine_ms / millisecondsPerSecond)
      if (record.output_tokens > 0 && answerBeganMs !== null)
        firstTokens(labels)(Math.max(0, answerBeganMs - record.timestamp) / millisecondsPerSecond)
    }
  }
}
