/** The meter: reserves credit before a request runs, charges what it used, and writes its record to the journal. */
import type { Model, Prices } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Ticks } from "../base/money.ts"
import type { Principal } from "../contract/access.ts"
import type { RequestFacts } from "../contract/endpoint.ts"
import { fitsUtf8 } from "../contract/decisions.ts"
import { Fault } from "../contract/errors.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import type { Journal } from "../store/journal/writer.ts"
import type { Reservation } from "./money/lease-account.ts"
import type { LeaseBook, Payers } from "./money/lease-book.ts"

const callSources = [
  "decisions",
  "systemone",
  "responses",
  "responses_ws",
  "chat_completions",
  "embeddings",
  "teach",
  "check",
  "shadow",
] as const
export type CallSource = (typeof callSources)[number]

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
  readonly inferenceType: "generation" | "embedding"
  readonly principal: Principal
  /** Null when the principal has no standing in an organization: such a request is refused and not recorded. */
  readonly organizationId: string | null
  readonly request: RequestFacts
}

export interface Meter {
  /** Opens the record of a request. It must be finished exactly once, however the request ends. */
  begin(start: SequenceStart): Sequence
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

export interface Sequence {
  readonly id: string
  /** Names the model: its SKU, or what the request sent when the catalog does not know it. */
  name(model: string): void
  /**
   * Reserves the most that the request can cost. Throws Fault `insufficient_credits`, `spend_limit_exceeded`,
   * `payment_method_required` or `billing_required`. Nothing may be evaluated before it resolves.
   */
  reserve(model: Model, most: Usage): Promise<void>
  /** Where the request is being worked on. */
  placed(region: string): void
  /** The first byte of the response is about to leave. */
  firstByte(): void
  /**
   * Charges what was used and records how it ended. Resolves when the record is in the journal: only then may the last
   * byte or terminal event be handed to the socket. Idempotent: the first call counts.
   */
  finish(usage: Usage, outcome: Outcome): Promise<void>
}

export interface MeterParts {
  readonly journal: Pick<Journal, "append" | "checkRoom">
  readonly leases: Pick<LeaseBook, "reserve">
  readonly payers: Pick<Payers, "of">
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Texts from outside are cut, so that a record has a size. */
const modelBytesMax = 256
const textCharactersMax = 512
const messageCharactersMax = 1_000
const toolCallsMax = 128
const toolNameCharactersMax = 64

export function createMeter(parts: MeterParts): Meter {
  return { begin: (start) => new MeteredSequence(parts, start) }
}

class MeteredSequence implements Sequence {
  readonly id: string
  readonly #parts: MeterParts
  readonly #start: SequenceStart
  #model = ""
  #payerId: string | null = null
  #prices: Model["prices"] | null = null
  #reservation: Reservation | null = null
  #region: string | null = null
  #firstByteMs: number | null = null
  #finished: Promise<void> | null = null

  constructor(parts: MeterParts, start: SequenceStart) {
    this.#parts = parts
    this.#start = start
    this.id = parts.ids.next("seq")
  }

  name(model: string): void {
    this.#model = cutBytes(model, modelBytesMax)
  }

  async reserve(model: Model, most: Usage): Promise<void> {
    const { journal, leases, payers } = this.#parts
    const { organizationId, request } = this.#start
    if (organizationId === null)
      throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
    this.name(model.sku)
    this.#prices = model.prices
    await journal.checkRoom().catch((cause: unknown) => {
      throw new Fault("metering_unavailable", "Cannot admit the request: its usage could not be recorded", {
        cause,
      })
    })
    const payerId = await payers.of(organizationId)
    this.#reservation = await leases.reserve(payerId, request.startedMs, costOf(model.prices, most))
    this.#payerId = payerId
  }

  placed(region: string): void {
    this.#region = region
  }

  firstByte(): void {
    this.#firstByteMs ??= this.#parts.clock.nowMs()
  }

  finish(usage: Usage, outcome: Outcome): Promise<void> {
    this.#finished ??= this.#finish(usage, outcome)
    return this.#finished
  }

  async #finish(usage: Usage, outcome: Outcome): Promise<void> {
    const { organizationId } = this.#start
    if (organizationId === null) return
    try {
      const costTicks = this.#cost(usage)
      await this.#parts.journal.append(this.#record(organizationId, usage, outcome, costTicks))
      this.#reservation?.settle(costTicks)
    } catch (cause) {
      // Not recorded is not charged, and must not be answered as if it were.
      this.#reservation?.settle(0n)
      throw new Fault("metering_unavailable", "Cannot finish the request: its usage could not be recorded", {
        cause,
      })
    }
  }

  /** Never more than was reserved: a wrong upper bound is at our expense. */
  #cost(usage: Usage): Ticks {
    if (!this.#reservation || !this.#prices) return 0n
    const ticks = costOf(this.#prices, usage)
    if (ticks <= this.#reservation.ticks) return ticks
    this.#parts.log.warn(
      { seq_id: this.id, reserved_ticks: String(this.#reservation.ticks), cost_ticks: String(ticks) },
      "a sequence used more than was reserved for it",
    )
    return this.#reservation.ticks
  }

  #record(organizationId: string, usage: Usage, outcome: Outcome, costTicks: Ticks): SequenceRecord {
    const { principal, request, callSource, inferenceType } = this.#start
    const nowMs = this.#parts.clock.nowMs()
    // Nothing was sent before it ended: the first byte is about to leave now.
    const firstByteMs = this.#firstByteMs ?? nowMs
    return {
      seq_id: this.id,
      timestamp: request.startedMs,
      organization_id: organizationId,
      billing_account_id: this.#payerId,
      billing_mode: this.#reservation?.mode ?? null,
      model: this.#model,
      call_source: callSource,
      inference_type: inferenceType,
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
    }
  }
}

/** Where even this cannot be recorded, the caller gets the first error; the journal refuses new requests by then. */
export async function finishFailed(sequence: Sequence, usage: Usage, error: unknown): Promise<void> {
  try {
    await sequence.finish(usage, failureOf(error))
  } catch {
    // As said above.
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

const cutCalls = (names: readonly string[]): readonly string[] =>
  names.slice(0, toolCallsMax).map((name) => name.slice(0, toolNameCharactersMax))

const parsedBytesMax = 64 * 1024
const modelMember = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/

/** The model that a refused body names, as far as it can be told: the body may be no JSON, or too large to parse here. */
export function modelNamedIn(body: Uint8Array): string {
  const text = new TextDecoder().decode(body.subarray(0, parsedBytesMax))
  const whole = body.length <= parsedBytesMax ? parse(text) : undefined
  const model = whole === undefined ? parse(modelMember.exec(text)?.[1] ?? "") : Object(whole).model
  return typeof model === "string" ? model : ""
}

/** Undefined when the text is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Cut between characters, not inside one. */
function cutBytes(text: string, bytesMax: number): string {
  if (fitsUtf8(text, bytesMax)) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax)).replace(/\uFFFD+$/, "")
}
