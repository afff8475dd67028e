/**
 * The record of a sequence: what is described while the request runs, with the stages of a virtual model, and what the journal
 * is given when it ends.
 */
import type { Model, Prices } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Ticks } from "../base/money.ts"
import type { Principal } from "../contract/access.ts"
import { fitsUtf8 } from "../contract/decisions.ts"
import type { CallSource } from "../contract/call-sources.ts"
import type { RequestFacts } from "../contract/endpoint.ts"
import type { RecordedStage, SequenceRecord } from "../store/journal/record.ts"
import type { Journal } from "../store/journal/journal.ts"
import { RequestTrace, beginSequenceSpan, endSequenceSpan } from "./telemetry.ts"
import { type Tags, mergeTags } from "./tags.ts"

export interface Usage {
  /** Without cached ones. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** How long the model worked; charged where a model has a price per second. */
  readonly executionMs: number
}

export const noUsage: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, executionMs: 0 }

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
export interface SequenceStart {
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
  /** The name of the virtual model that was asked. */
  readonly virtualModel?: string
}

/** Texts from outside are cut, so that a record has a size. */
const modelBytesMax = 256
const textCharactersMax = 512
const messageCharactersMax = 1_000
const toolCallsMax = 128
const toolNameCharactersMax = 64

/** Who pays, and which budgets the cost is held under. */
export interface RecordedHolds extends Pick<
  SequenceRecord,
  "billing_account_id" | "budgets" | "tag_budgets"
> {
  readonly billing_mode: "prepaid" | "postpaid" | null
}

/** What the end of a request adds to its record. */
interface SequenceEnd {
  readonly usage: Usage
  readonly outcome: Outcome
  readonly costTicks: Ticks
  /** Who pays, and what its cost was held under. */
  readonly held: RecordedHolds
}

export class OpenRecord {
  id: string
  readonly trace: RequestTrace
  readonly stages: StageBook
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #start: SequenceStart
  readonly #description: SequenceDescription = {}
  #tags: Tags = {}
  #model = ""
  #region: string | null = null
  #firstByteMs: number | null = null

  constructor({ clock, ids }: { readonly clock: Clock; readonly ids: Ids }, start: SequenceStart) {
    this.#clock = clock
    this.#ids = ids
    this.#start = start
    this.id = start.request.sequenceId ?? ids.next("seq")
    this.stages = new StageBook(clock)
    this.trace = new RequestTrace(clock, beginSequenceSpan(start.callSource))
  }

  get tags(): Tags {
    return this.#tags
  }

  get branches(): number {
    return this.#description.branches ?? 0
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

  beginStage(model: Model, questions: number | null): void {
    this.name(model.sku)
    this.stages.begin(model, questions)
    this.#region = null
  }

  endStage(end: Omit<StageEnd, "region">): void {
    this.stages.end({ ...end, region: this.#region })
  }

  placed(region: string): void {
    this.#region = region
  }

  firstByte(): void {
    this.#firstByteMs ??= this.#clock.nowMs()
  }

  /** What the journal is given. */
  encode({ usage, outcome, costTicks, held }: SequenceEnd): SequenceRecord {
    const { principal, organizationId, request, callSource } = this.#start
    const nowMs = this.#clock.nowMs()
    // Nothing was sent before it ended: the first byte is about to leave now.
    const firstByteMs = this.#firstByteMs ?? nowMs
    // What may be repeated and fails for nothing may yet succeed under its own id.
    const mayRepeat = request.sequenceId !== undefined
    const mayYetSucceed = mayRepeat && outcome.result !== "success" && costTicks === 0n
    if (mayYetSucceed) this.id = this.#ids.next("seq")
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
      billing_account_id: held.billing_account_id,
      billing_mode: held.billing_mode,
      budgets: held.budgets,
      tag_budgets: held.tag_budgets,
      stages: this.stages.isUsed ? this.stages.records(costTicks) : undefined,
      may_repeat: mayRepeat && !mayYetSucceed ? true : undefined,
    }
  }

  /** Resolves when the record is in the journal; the trace of the request ends with it. */
  async write(
    journal: Pick<Journal, "append">,
    record: SequenceRecord,
    isModelKnown: boolean,
  ): Promise<void> {
    const { span } = this.trace
    const journaling = span?.child("journal")
    try {
      await journal.append(record)
    } catch (error) {
      journaling?.fail("metering_unavailable")
      throw error
    } finally {
      journaling?.end()
      if (span) endSequenceSpan(span, record, { branches: this.branches, isModelKnown })
    }
  }
}

/** The time that a request counts for. */
export const chargedMsOf = ({ startedMs, chargedMs }: RequestFacts): number => chargedMs ?? startedMs

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
    const sum = (field: keyof Usage): number =>
      this.#ended.reduce((total, { usage }) => total + usage[field], 0)
    return {
      inputTokens: sum("inputTokens"),
      cachedInputTokens: sum("cachedInputTokens"),
      outputTokens: sum("outputTokens"),
      executionMs: sum("executionMs"),
    }
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
