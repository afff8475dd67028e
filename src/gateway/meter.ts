/**
 * The meter: one sequence for each inference request, from before it is admitted until its usage is on record.
 *
 * Handlers call it in this order: `begin`; `describe`, `tag` and `name` as the request is read; `reserve`, before which nothing is
 * evaluated; `placed` and `firstByte` as it is answered; `finish`, before the last byte leaves. Virtual models add `beginStage`,
 * `admitStage` and `endStage`. A sequence has two halves that do not know each other: the reservations (reservations.ts: credit,
 * budgets, limits a minute) and the record (sequence-record.ts: what is described, encoded and written to the journal).
 */
import type { Model, Prices } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import type { Ticks } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import type { RecordedStage } from "../store/journal/record.ts"
import type { Journal } from "../store/journal/journal.ts"
import type { ObserveFinished, RequestTrace } from "./telemetry.ts"
import { type ReservationDeps, Reservations } from "./reservations.ts"
import {
  OpenRecord,
  type Outcome,
  type SequenceDescription,
  type SequenceStart,
  type Usage,
  chargedMsOf,
  costOf,
} from "./sequence-record.ts"
import type { Tags } from "./tags.ts"

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
  readonly trace: RequestTrace
  readonly #deps: MeterDeps
  readonly #start: SequenceStart
  readonly #record: OpenRecord
  readonly #reservations: Reservations
  /** Of the model that was admitted last; what is not admitted is not charged. */
  #prices: Prices | null = null
  #finished: Promise<void> | null = null

  constructor(deps: MeterDeps, start: SequenceStart) {
    this.#deps = deps
    this.#start = start
    this.#record = new OpenRecord(deps, start)
    this.#reservations = new Reservations(deps, start.principal, chargedMsOf(start.request))
    this.trace = this.#record.trace
  }

  get id(): string {
    return this.#record.id
  }

  describe(description: SequenceDescription): void {
    this.#record.describe(description)
  }

  tag(tags: Tags): void {
    this.#record.tag(tags)
  }

  name(model: string): void {
    this.#record.name(model)
  }

  get stages(): readonly RecordedStage[] {
    return this.#record.stages.records()
  }

  get answering(): Model | null {
    return this.#record.stages.answering
  }

  get spentTicks(): Ticks {
    return this.#record.stages.spentTicks
  }

  beginStage(model: Model, questions?: number): void {
    this.#record.beginStage(model, questions ?? null)
    this.#reservations.beginStage()
  }

  endStage(result: string, usage: Usage): void {
    this.#record.endStage({ result, usage, isCharged: this.#prices !== null })
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
    const wish = this.#wish(model, most, furtherTicks)
    await this.#reservations.reserve(this.#start.organizationId, this.#record.tags, model, wish)
  }

  async admitStage(model: Model, most: Usage, furtherTicks: Ticks): Promise<void> {
    await this.#reservations.admitStage(model, this.#wish(model, most, furtherTicks))
    this.#prices = model.prices
  }

  #wish(model: Model, most: Usage, furtherTicks: Ticks): { inputTokens: number; ticks: Ticks } {
    return {
      inputTokens: most.inputTokens + most.cachedInputTokens,
      ticks: this.spentTicks + costOf(model.prices, most) + furtherTicks,
    }
  }

  placed(region: string): void {
    this.#record.placed(region)
  }

  firstByte(): void {
    this.#record.firstByte()
  }

  finish(usage: Usage, outcome: Outcome): Promise<void> {
    this.#finished ??= this.#finish(usage, outcome)
    return this.#finished
  }

  async #finish(usage: Usage, outcome: Outcome): Promise<void> {
    const { stages } = this.#record
    try {
      if (outcome.result !== "success") stages.waive()
      this.endStage(outcome.errorCode ?? outcome.result, usage)
      const used = stages.isUsed ? stages.usage : usage
      const costTicks = this.#cost(stages.isUsed ? stages.spentTicks : usage)
      const held = this.#reservations.recorded()
      const record = this.#record.encode({ usage: used, outcome, costTicks, held })
      await this.#record.write(this.#deps.journal, record, this.#prices !== null || record.region !== null)
      this.#reservations.settle(costTicks)
      this.#reservations.countWritten(used.outputTokens)
      const { branches } = this.#record
      this.#deps.observe(record, { branches, answerBeganMs: this.trace.answerBeganMs })
    } catch (cause) {
      // Not recorded is not charged, and must not be answered as if it were.
      this.#reservations.settle(0n)
      throw new Fault("metering_unavailable", "Cannot finish the request: its usage could not be recorded", {
        cause,
      })
    }
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
