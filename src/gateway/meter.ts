/**
 * The meter: one sequence for each inference request, from before it is admitted until its usage is on record.
 *
 * Handlers call it in this order: `begin`; `describe`, `tag` and `name` as the request is read; `reserve`, before which nothing is
 * evaluated; `placed` and `firstByte` as it is answered; `finish`, before the last byte leaves. Virtual models add `beginStage`,
 * `admitStage` and `endStage`. What is reserved (credit, budgets, limits a minute) is in reservations.ts; what is described is
 * encoded here, and written to the journal when the request ends.
 */
import type { Model, Prices } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Ticks } from "../base/money.ts"
import type { Principal } from "../contract/access.ts"
import { fitsUtf8 } from "../contract/decisions.ts"
import type { CallSource, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { LanguageTag } from "../contract/language.ts"
import { type Tags, mergeTags } from "../contract/tags.ts"
import type { Journal } from "../store/journal/journal.ts"
import type { RecordedStage, SequenceRecord } from "../store/journal/record.ts"
import { type RecordedHolds, type ReservationDeps, Reservations } from "./reservations.ts"
import { type ObserveFinished, RequestTrace, beginSequenceSpan, endSequenceSpan } from "./telemetry.ts"

export interface Usage {
  /** Without cached ones. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** How long the model worked; charged where a model has a price per second. */
  readonly executionMs: number
}

export const noUsage: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, executionMs: 0 }

export function sumUsage(usages: readonly Usage[]): Usage {
  const sum = (field: keyof Usage): number => usages.reduce((total, usage) => total + usage[field], 0)
  return {
    inputTokens: sum("inputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    outputTokens: sum("outputTokens"),
    executionMs: sum("executionMs"),
  }
}

export interface Outcome {
  /** Cancelled: the client went away. */
  readonly result: "success" | "error" | "cancelled"
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly stopReason: "stop" | "length" | "tool_calls" | "content_filter" | null
  readonly toolCalls: readonly string[]
  /** Where it ran; null when it never did. */
  readonly region: string | null
}

/** The request, its principal and its organization, known before it is admitted. */
interface SequenceStart {
  readonly callSource: CallSource
  readonly principal: Principal
  readonly organizationId: string
  readonly request: RequestFacts
}

/** What a request asked for, as far as its record says it. */
export interface SequenceDescription {
  readonly questionSetId?: string
  readonly questionSet?: string
  readonly questionSetVersion?: number
  readonly questions?: number
  readonly branches?: number
  readonly abstained?: number
  /** What guardrails did, as tags that those of the caller do not replace. */
  readonly guardrails?: Tags
  readonly language?: LanguageTag
  /** The name of the virtual model that was asked. */
  readonly virtualModel?: string
}

/** Texts from outside are cut, so that a record has a size. */
const modelBytesMax = 256
const textCharactersMax = 512
const messageCharactersMax = 1_000
const toolCallsMax = 128
const toolNameCharactersMax = 64

/** What the end of a request adds to its record. */
interface SequenceEnd {
  readonly usage: Usage
  readonly outcome: Outcome
  readonly costTicks: Ticks
  /** Who pays, and what its cost was held under. */
  readonly held: RecordedHolds
}

export interface Meter {
  /** Opens the record of a request. It must be finished exactly once, however the request ends. */
  begin(start: SequenceStart): Sequence
}

export interface Sequence {
  /** Another one once a request that may be repeated has failed for nothing. */
  readonly id: string
  /** Measures where the request spends its time. */
  readonly trace: RequestTrace
  /** Adds to what the record says. */
  describe(description: SequenceDescription): void
  /** Adds the caller's tags; those that were added first win. */
  tag(tags: Tags): void
  /** Names the model: its SKU, or what the request sent when the catalog does not know it. */
  name(model: string): void
  /**
   * Reserves the most that the request can cost. Throws Fault `insufficient_credits`, `spend_limit_exceeded`,
   * `payment_method_required` or `billing_required`, or, where the key has limits of its own, `model_denied`,
   * `rate_limited` or `key_budget_exceeded`, or, where a tag has limits, `rate_limited` or `tag_budget_exceeded`. Nothing may
   * be evaluated before it resolves. `furtherTicks` is what later stages can cost. What was reserved before is given back.
   */
  reserve(model: Model, most: Usage, furtherTicks?: Ticks): Promise<void>
  /** Of a virtual model: what follows is the work of this model. */
  beginStage(model: Model, questions?: number): void
  /** Ends the stage with `success` or the code of its error. */
  endStage(result: string, usage: Usage): void
  /**
   * Admits a further stage to what is reserved already, and gives back what it and those before it do not need. Throws Fault
   * `model_denied` or `rate_limited` where the key or a tag has limits of its own.
   */
  admitStage(model: Model, most: Usage, furtherTicks: Ticks): Promise<void>
  /** The stages that have ended. */
  readonly stages: readonly RecordedStage[]
  /** What they cost. */
  readonly spentTicks: Ticks
  /** The model whose stage is open. */
  readonly answering: Model | null
  /** Where the request is being worked on. */
  placed(region: string): void
  /** The first byte of the response is about to leave. */
  firstByte(): void
  /**
   * Charges what was used and records how it ended. Resolves when the record is in the journal: only then may the last
   * byte or terminal event be handed to the socket. Idempotent: the first call counts. The usage is that of the stage that is
   * open, where there are stages.
   */
  finish(usage: Usage, outcome: Outcome): Promise<void>
}

export interface MeterDeps extends ReservationDeps {
  readonly journal: Pick<Journal, "append" | "checkRoom">
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Told of every request that is on record. */
  readonly observe: ObserveFinished
}

export function createMeter(deps: MeterDeps): Meter {
  return { begin: (start) => new MeteredSequence(deps, start) }
}

class MeteredSequence implements Sequence {
  id: string
  readonly trace: RequestTrace
  readonly #deps: MeterDeps
  readonly #start: SequenceStart
  readonly #reservations: Reservations
  readonly #stages: StageBook
  readonly #description: SequenceDescription = {}
  #tags: Tags = {}
  #model = ""
  #region: string | null = null
  #firstByteMs: number | null = null
  /** Of the model that was admitted last; what is not admitted is not charged. */
  #prices: Prices | null = null
  #finished: Promise<void> | null = null

  constructor(deps: MeterDeps, start: SequenceStart) {
    this.#deps = deps
    this.#start = start
    this.id = start.request.sequenceId ?? deps.ids.next("seq")
    this.trace = new RequestTrace(deps.clock, beginSequenceSpan(start.callSource))
    this.#stages = new StageBook(deps.clock)
    this.#reservations = new Reservations(deps, start.principal, chargedMsOf(start.request))
  }

  describe(description: SequenceDescription): void {
    Object.assign(this.#description, description)
  }

  tag(tags: Tags): void {
    this.#tags = mergeTags(this.#tags, tags)
  }

  name(model: string): void {
    this.#model = cutBytes(model, modelBytesMax)
  }

  get stages(): readonly RecordedStage[] {
    return this.#stages.records()
  }

  get answering(): Model | null {
    return this.#stages.answering
  }

  get spentTicks(): Ticks {
    return this.#stages.spentTicks
  }

  beginStage(model: Model, questions: number | null = null): void {
    this.name(model.sku)
    this.#stages.begin(model, questions)
    this.#region = null
    this.#reservations.beginStage()
  }

  endStage(result: string, usage: Usage): void {
    this.#stages.end({ result, usage, region: this.#region, isCharged: this.#prices !== null })
  }

  async reserve(model: Model, most: Usage, furtherTicks: Ticks = 0n): Promise<void> {
    this.name(model.sku)
    this.#prices = model.prices
    try {
      await this.#deps.journal.checkRoom()
    } catch (cause) {
      throw new Fault("metering_unavailable", "Cannot admit the request: its usage could not be recorded", {
        cause,
      })
    }
    const estimate = this.#estimate(model, most, furtherTicks)
    await this.#reservations.reserve(this.#start.organizationId, this.#tags, model, estimate)
  }

  async admitStage(model: Model, most: Usage, furtherTicks: Ticks): Promise<void> {
    await this.#reservations.admitStage(model, this.#estimate(model, most, furtherTicks))
    this.#prices = model.prices
  }

  #estimate(model: Model, most: Usage, furtherTicks: Ticks): { inputTokens: number; ticks: Ticks } {
    return {
      inputTokens: most.inputTokens + most.cachedInputTokens,
      ticks: this.spentTicks + costOf(model.prices, most) + furtherTicks,
    }
  }

  placed(region: string): void {
    this.#region = region
  }

  firstByte(): void {
    this.#firstByteMs ??= this.#deps.clock.nowMs()
  }

  finish(usage: Usage, outcome: Outcome): Promise<void> {
    this.#finished ??= this.#finish(usage, outcome)
    return this.#finished
  }

  async #finish(usage: Usage, outcome: Outcome): Promise<void> {
    const stages = this.#stages
    try {
      if (outcome.result !== "success") stages.waive()
      this.endStage(outcome.errorCode ?? outcome.result, usage)
      const used = stages.isUsed ? stages.usage : usage
      const costTicks = this.#cost(stages.isUsed ? stages.spentTicks : usage)
      const held = this.#reservations.recorded()
      const record = this.#encode({ usage: used, outcome, costTicks, held })
      await this.#write(record)
      this.#reservations.settle(costTicks)
      this.#reservations.countWritten(used.outputTokens)
      this.#deps.observe(record, { branches: this.#branches, answerBeganMs: this.trace.answerBeganMs })
    } catch (cause) {
      // Not recorded is not charged, and must not be answered as if it were.
      this.#reservations.settle(0n)
      throw new Fault("metering_unavailable", "Cannot finish the request: its usage could not be recorded", {
        cause,
      })
    }
  }

  get #branches(): number {
    return this.#description.branches ?? 0
  }

  /** Never more than was reserved: a wrong upper bound is at our expense. */
  #cost(used: Usage | Ticks): Ticks {
    const reservedTicks = this.#reservations.ticks
    if (reservedTicks === null || !this.#prices) return 0n
    const ticks = typeof used === "bigint" ? used : costOf(this.#prices, used)
    if (ticks <= reservedTicks) return ticks
    this.#deps.log.warn(
      { seq_id: this.id, reserved_ticks: String(reservedTicks), cost_ticks: String(ticks) },
      "a sequence used more than was reserved for it",
    )
    return reservedTicks
  }

  /** What the journal is given. */
  #encode({ usage, outcome, costTicks, held }: SequenceEnd): SequenceRecord {
    const { principal, organizationId, request, callSource } = this.#start
    const nowMs = this.#deps.clock.nowMs()
    // Nothing was sent before it ended: the first byte is about to leave now.
    const firstByteMs = this.#firstByteMs ?? nowMs
    // What may be repeated and fails for nothing may yet succeed under its own id.
    const mayRepeat = request.sequenceId !== undefined
    const mayYetSucceed = mayRepeat && outcome.result !== "success" && costTicks === 0n
    if (mayYetSucceed) this.id = this.#deps.ids.next("seq")
    const isUser = principal.kind === "session"
    const description = this.#description
    const { guardrails } = description
    return {
      seq_id: this.id,
      timestamp: chargedMsOf(request),
      organization_id: organizationId,
      model: this.#model,
      call_source: callSource,
      inference_type: callSource === "embeddings" ? "embedding" : "generation",
      result: outcome.result,
      input_tokens: usage.inputTokens,
      cached_input_tokens: usage.cachedInputTokens,
      output_tokens: usage.outputTokens,
      execution_ms: Math.ceil(usage.executionMs),
      gateway_latency_ms: Math.max(0, Math.round(firstByteMs - request.startedMs)),
      seq_duration_ms: Math.max(0, Math.round(nowMs - request.startedMs)),
      tool_calls: cutCalls(outcome.toolCalls),
      api_key_id: principal.kind === "key" ? principal.id : null,
      client_ip: request.ip,
      client_ua: request.userAgent?.slice(0, textCharactersMax) ?? null,
      error_code: outcome.errorCode,
      error_message: outcome.errorMessage?.slice(0, messageCharactersMax) ?? null,
      request_id: request.id,
      stop_reason: outcome.stopReason,
      region: outcome.region ?? this.#region,
      cost_ticks: String(costTicks),
      principal_kind: isUser ? "user" : principal.kind === "workload" ? "workload" : "key",
      principal_id: isUser ? (principal.userId ?? principal.id) : principal.id,
      question_set_id: description.questionSetId ?? null,
      question_set: description.questionSet ?? null,
      question_set_version: description.questionSetVersion ?? null,
      questions: description.questions ?? null,
      abstained: description.abstained ?? null,
      tags: guardrails ? mergeTags(guardrails, this.#tags) : this.#tags,
      attempts: this.trace.attempts,
      queue_ms: this.trace.msIn("queue"),
      route_ms: this.trace.msIn("route"),
      engine_ms: this.trace.msIn("engine"),
      virtual_model: description.virtualModel,
      language: description.language,
      billing_account_id: held.billing_account_id,
      billing_mode: held.billing_mode,
      budgets: held.budgets,
      tag_budgets: held.tag_budgets,
      stages: this.#stages.isUsed ? this.#stages.records(costTicks) : undefined,
      may_repeat: mayRepeat && !mayYetSucceed ? true : undefined,
    }
  }

  /** Resolves when the record is in the journal; the trace of the request ends with it. */
  async #write(record: SequenceRecord): Promise<void> {
    const { span } = this.trace
    const journaling = span?.child("journal")
    try {
      await this.#deps.journal.append(record)
    } catch (error) {
      journaling?.fail("metering_unavailable")
      throw error
    } finally {
      journaling?.end()
      const isModelKnown = this.#prices !== null || record.region !== null
      if (span) endSequenceSpan(span, record, { branches: this.#branches, isModelKnown })
    }
  }
}

/** Answered, with nothing more to tell of it. */
export const success: Outcome = {
  result: "success",
  errorCode: null,
  errorMessage: null,
  stopReason: null,
  toolCalls: [],
  region: null,
}

/** How a request ended that threw: the client went away, or it failed or was refused. */
export function failureOf(error: unknown): Outcome {
  const fault = error instanceof Fault ? error : null
  const gone = fault?.code === "client_closed"
  return {
    result: gone ? "cancelled" : "error",
    errorCode: gone ? null : (fault?.code ?? "internal"),
    errorMessage: gone ? null : (fault?.message ?? "Cannot answer the request: an unexpected failure"),
    stopReason: null,
    toolCalls: [],
    region: null,
  }
}

/** The time that a request counts for. */
const chargedMsOf = ({ startedMs, chargedMs }: RequestFacts): number => chargedMs ?? startedMs

const cutCalls = (names: readonly string[]): readonly string[] =>
  names.slice(0, toolCallsMax).map((name) => name.slice(0, toolNameCharactersMax))

/** Cut between characters, not inside one. */
function cutBytes(text: string, bytesMax: number): string {
  if (fitsUtf8(text, bytesMax)) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax)).replace(/\uFFFD+$/, "")
}

interface OpenStage {
  readonly model: Model
  readonly questions: number | null
  readonly startedMs: number
}

interface StageEnd {
  readonly result: string
  readonly usage: Usage
  readonly region: string | null
  /** False: it costs nothing. */
  readonly isCharged: boolean
}

interface EndedStage extends OpenStage, StageEnd {
  readonly ms: number
  readonly costTicks: Ticks
}

/** The stages of one request for a virtual model: which models worked on it, for how long, and what each used and cost. */
class StageBook {
  readonly #clock: Clock
  readonly #ended: EndedStage[] = []
  #open: OpenStage | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether a stage has ended. */
  get isUsed(): boolean {
    return this.#ended.length > 0
  }

  /** Whose stage is open. */
  get answering(): Model | null {
    return this.#open?.model ?? null
  }

  get spentTicks(): Ticks {
    return this.#ended.reduce((sum, { costTicks }) => sum + costTicks, 0n)
  }

  /** Of all stages. */
  get usage(): Usage {
    return sumUsage(this.#ended.map(({ usage }) => usage))
  }

  begin(model: Model, questions: number | null): void {
    this.#open = { model, questions, startedMs: this.#clock.monotonicMs() }
  }

  /** Does nothing where no stage is open. */
  end(end: StageEnd): void {
    const stage = this.#open
    if (!stage) return
    this.#open = null
    const ms = this.#clock.monotonicMs() - stage.startedMs
    const costTicks = end.isCharged ? costOf(stage.model.prices, end.usage) : 0n
    this.#ended.push({ ...stage, ...end, ms, costTicks })
  }

  /** What was answered by no one is free: nothing counts of the stages that have ended. */
  waive(): void {
    for (const [at, stage] of this.#ended.entries())
      this.#ended[at] = { ...stage, usage: noUsage, costTicks: 0n }
  }

  /** Their costs add up to what is charged, also where that is less than they used. */
  records(chargedTicks = this.spentTicks): RecordedStage[] {
    let left = chargedTicks
    return this.#ended.map(({ model, result, region, questions, usage, ms, costTicks }) => {
      const charged = costTicks < left ? costTicks : left
      left -= charged
      return {
        model: model.sku,
        result,
        region,
        questions,
        input_tokens: usage.inputTokens,
        cached_input_tokens: usage.cachedInputTokens,
        output_tokens: usage.outputTokens,
        ms: Math.round(ms * 100) / 100,
        cost_ticks: String(charged),
      }
    })
  }
}

/** What usage costs, in whole ticks. */
export function costOf(prices: Prices, usage: Usage): Ticks {
  return (
    prices.inputTokenTicks * BigInt(usage.inputTokens) +
    prices.cachedInputTokenTicks * BigInt(usage.cachedInputTokens) +
    prices.outputTokenTicks * BigInt(usage.outputTokens) +
    // A part of a millisecond is a millisecond: the price of one cannot be divided.
    prices.millisecondTicks * BigInt(Math.ceil(usage.executionMs))
  )
}

/** One token of the cheapest model that costs anything; a price per second is reserved up to the deadline. */
export function cheapestRequest(models: readonly Model[], timeoutMs: number): Ticks {
  const usage = { ...noUsage, inputTokens: 1, executionMs: timeoutMs }
  return models
    .filter(({ enabled }) => enabled)
    .map(({ prices }) => costOf(prices, usage))
    .reduce((least, ticks) => (ticks > 0n && (least === 0n || ticks < least) ? ticks : least), 0n)
}
