/** The meter: reserves credit before a request runs, charges what it used, and writes its record to the journal. */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Ticks } from "../base/money.ts"
import type { Soon } from "../base/soon.ts"
import { Fault } from "../contract/errors.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import type { Journal } from "../store/journal/writer.ts"
import {
  type Meter,
  type Outcome,
  type Sequence,
  type SequenceStart,
  type Usage,
  failureOf,
  noUsage,
} from "./meter.ts"
import type { Payers } from "./money/payers.ts"
import { costOf } from "./money/price.ts"
import type { Reservation } from "./money/lease-account.ts"
import type { LeaseBook } from "./money/lease-book.ts"

export interface MeterParts {
  readonly journal: Pick<Journal, "append" | "checkRoom" | "hasRoom">
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
  #isFinished = false

  constructor(parts: MeterParts, start: SequenceStart) {
    this.#parts = parts
    this.#start = start
    this.id = parts.ids.next("seq")
  }

  name(model: string): void {
    this.#model = cutBytes(model, modelBytesMax)
  }

  reserve(model: Model, most: Usage): Soon<void> {
    const { journal, leases, payers } = this.#parts
    const { organizationId, request } = this.#start
    if (organizationId === null)
      throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
    this.name(model.sku)
    this.#prices = model.prices
    const ticks = costOf(model.prices, most)
    const payer = journal.hasRoom ? payers.of(organizationId) : this.#payerWithRoom(organizationId)
    if (typeof payer !== "string") return this.#reserveLater(payer, ticks)
    const reserved = leases.reserve(payer, request.startedMs, ticks)
    if (reserved instanceof Promise) return this.#hold(payer, reserved)
    this.#payerId = payer
    this.#reservation = reserved
    return undefined
  }

  /** Who pays, once the journal is found to have room after all. */
  async #payerWithRoom(organizationId: string): Promise<string> {
    await this.#parts.journal.checkRoom().catch((cause: unknown) => {
      throw new Fault("metering_unavailable", "Cannot admit the request: its usage could not be recorded", {
        cause,
      })
    })
    return await this.#parts.payers.of(organizationId)
  }

  async #reserveLater(payer: Promise<string>, ticks: Ticks): Promise<void> {
    const payerId = await payer
    await this.#hold(payerId, this.#parts.leases.reserve(payerId, this.#start.request.startedMs, ticks))
  }

  async #hold(payerId: string, reserving: Soon<Reservation>): Promise<void> {
    this.#reservation = await reserving
    this.#payerId = payerId
  }

  placed(region: string): void {
    this.#region = region
  }

  firstByte(): void {
    this.#firstByteMs ??= this.#parts.clock.nowMs()
  }

  finish(usage: Usage, outcome: Outcome): Soon<void> {
    if (this.#isFinished) return this.#finished ?? undefined
    this.#isFinished = true
    const { organizationId } = this.#start
    if (organizationId === null) return undefined
    let costTicks = 0n
    let written: Soon<void>
    try {
      costTicks = this.#cost(usage)
      written = this.#parts.journal.append(this.#record(organizationId, usage, outcome, costTicks))
    } catch (cause) {
      written = Promise.reject(cause)
    }
    if (written instanceof Promise) return (this.#finished = this.#finishLater(written, costTicks))
    this.#reservation?.settle(costTicks)
    return undefined
  }

  async #finishLater(written: Promise<void>, costTicks: Ticks): Promise<void> {
    try {
      await written
    } catch (cause) {
      // Not recorded is not charged, and must not be answered as if it were.
      this.#reservation?.settle(0n)
      throw new Fault("metering_unavailable", "Cannot finish the request: its usage could not be recorded", {
        cause,
      })
    }
    this.#reservation?.settle(costTicks)
  }

  /** Never more than was reserved: nobody pays for a mistake of ours in measuring the most. */
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

/** Records a request that was refused before its handler saw it; the id is null where it is nobody's to read. */
export function recordRefusal(
  meter: Meter,
  start: SequenceStart,
  fault: Fault,
): { readonly id: string | null; readonly written: Soon<void> } {
  const sequence = meter.begin(start)
  const id = start.organizationId === null ? null : sequence.id
  return { id, written: sequence.finish(noUsage, failureOf(fault)) }
}

const cutCalls = (names: readonly string[]): readonly string[] =>
  names.length === 0
    ? names
    : names.slice(0, toolCallsMax).map((name) => name.slice(0, toolNameCharactersMax))

/** Cut between characters, not inside one. */
function cutBytes(text: string, bytesMax: number): string {
  // No character takes more than three bytes of UTF-8.
  if (text.length * 3 <= bytesMax) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= bytesMax) return text
  return new TextDecoder().decode(bytes.subarray(0, bytesMax)).replace(/\uFFFD+$/, "")
}
