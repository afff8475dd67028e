/** The way of one request: takes it from worker to worker, along its plan, until one serves it or none is left. */
import type { Clock } from "../../base/clock.ts"
import type { Region } from "../../base/regions.ts"
import { Fault } from "../../contract/errors.ts"
import { JoinedSignal } from "./abort.ts"
import type { PrefixAffinity } from "./affinity.ts"
import { Attempt } from "./attempt.ts"
import type { Claim, Slot } from "./queue.ts"
import type { RetryBudget } from "./retry-budget.ts"
import type { Worker, WorkerEngines } from "./worker.ts"

export interface RouteParts {
  readonly plan: readonly Region[]
  readonly workers: readonly Worker[]
  readonly affinity: PrefixAffinity
  readonly budget: RetryBudget
  readonly clock: Clock
  /** How long the request may wait in queues, all of them together. */
  readonly queueWaitMs: number
  /** Told where the request is being worked on. */
  readonly onPlaced: (region: string) => void
  /** Told of every try that failed because of its worker. */
  readonly onFailure: (worker: Worker, error: unknown) => void
}

export interface Placement {
  readonly claim: Claim
  /** Names the prefix for affinity, where there is one; asked for only where there is a choice of workers. */
  readonly prefix: (() => string) | null
  /** A further answer to a request that has a place already needs none of its own. */
  readonly rides?: boolean
}

/** Prepares the work at a worker. */
export type Prepare<Prepared> = (engines: WorkerEngines, signal: AbortSignal) => Promise<Prepared>

export interface Placed<Prepared> {
  readonly prepared: Prepared
  readonly attempt: Attempt
}

/** Tries at different workers that one request may make. */
const attemptsMax = 6
/** Workers of one region that one request may try. */
const workersPerRegionMax = 2

export class Route {
  readonly #parts: RouteParts
  readonly #tried: Worker[] = []
  readonly #refusals: Fault[] = []
  readonly #failures: unknown[] = []
  #regionAt = 0
  #triedInRegion = 0
  #isRetry = false
  #waitLeftMs: number
  #current: Attempt | null = null
  /** Chosen, and had no free place at once. */
  #waitsFor: Worker | null = null
  #prefix: string | null = null

  constructor(parts: RouteParts) {
    this.#parts = parts
    this.#waitLeftMs = parts.queueWaitMs
  }

  /** Prepares the work at the next worker that can; may be called again after a failed run. */
  place<Prepared>(
    placement: Placement,
    signal: AbortSignal,
    prepare: Prepare<Prepared>,
  ): Promise<Placed<Prepared>> {
    const attempt = this.#enterNow(placement, signal)
    return attempt
      ? this.#prepareAt(attempt, placement, signal, prepare)
      : this.#placeLater(placement, signal, prepare)
  }

  async #placeLater<Prepared>(
    placement: Placement,
    signal: AbortSignal,
    prepare: Prepare<Prepared>,
  ): Promise<Placed<Prepared>> {
    const attempt = await this.#enter(placement, signal)
    return await this.#prepareAt(attempt, placement, signal, prepare)
  }

  /** There, or at the next worker when it fails because of this one. */
  #prepareAt<Prepared>(
    attempt: Attempt,
    placement: Placement,
    signal: AbortSignal,
    prepare: Prepare<Prepared>,
  ): Promise<Placed<Prepared>> {
    this.#current = attempt
    return attempt
      .step(signal, (either) => prepare(attempt.worker.engines, either))
      .then(
        (prepared) => {
          const prefix = this.#prefixOf(placement)
          if (prefix !== null) this.#parts.affinity.remember(prefix, attempt.worker)
          this.#parts.onPlaced(attempt.worker.regionId)
          return { prepared, attempt }
        },
        (error: unknown) => {
          this.failed(attempt, error, signal)
          return this.#placeLater(placement, signal, prepare)
        },
      )
  }

  /** Notes a failed try; throws when trying elsewhere would not help. */
  failed(attempt: Attempt, error: unknown, signal: AbortSignal): void {
    switch (attempt.failed(error, signal)) {
      case null:
        throw signal.reason
      case "caller":
        throw error
      case "full":
        // True: only a Fault is found to be a refusal.
        this.#refusals.push(error as Fault)
        return
      case "worker":
        this.#isRetry = true
        this.#failures.push(error)
        this.#parts.onFailure(attempt.worker, error)
    }
  }

  /** Gives back whatever is still held; harmless at any time. */
  close(): void {
    this.#current?.abandon()
  }

  /** The usual case, in which the first choice has a place that is free: nothing to wait for. Null otherwise. */
  #enterNow(placement: Placement, signal: AbortSignal): Attempt | null {
    if (this.#tried.length > 0) return null
    signal.throwIfAborted()
    const worker = this.#next(placement)
    if (!worker) return null
    const { queue } = worker
    const attempt = this.#attemptAt(
      worker,
      placement.rides ? queue.ride(placement.claim) : queue.take(placement.claim),
    )
    if (!attempt) this.#waitsFor = worker
    return attempt
  }

  async #enter(placement: Placement, signal: AbortSignal): Promise<Attempt> {
    for (;;) {
      signal.throwIfAborted()
      const worker = this.#waitsFor ?? this.#next(placement)
      this.#waitsFor = null
      if (!worker || !this.#mayTry()) throw this.#exhausted()
      const slot = placement.rides
        ? worker.queue.ride(placement.claim)
        : await this.#slotAt(worker, placement.claim, signal)
      const attempt = this.#attemptAt(worker, slot)
      if (attempt) return attempt
    }
  }

  /** Null when there is no place, or the worker is to be left alone. */
  #attemptAt(worker: Worker, slot: Slot | null): Attempt | null {
    const permit = slot && worker.breaker.request()
    if (permit) return new Attempt(worker, slot, permit, this.#parts.clock)
    slot?.release()
    return null
  }

  #prefixOf({ prefix }: Placement): string | null {
    if (prefix === null || this.#parts.workers.length < 2) return null
    this.#prefix ??= prefix()
    return this.#prefix
  }

  #next(placement: Placement): Worker | undefined {
    const { plan, workers, affinity } = this.#parts
    for (; this.#regionAt < plan.length; this.#regionAt++, this.#triedInRegion = 0) {
      if (this.#triedInRegion >= workersPerRegionMax) continue
      const regionId = plan[this.#regionAt]?.id
      const candidates = workers.filter(
        (worker) => worker.regionId === regionId && worker.isAvailable && !this.#tried.includes(worker),
      )
      const worker = affinity.choose(candidates, this.#prefixOf(placement), placement.claim.tokens)
      if (!worker) continue
      this.#triedInRegion++
      this.#tried.push(worker)
      return worker
    }
    return undefined
  }

  /** Going on after a failed try is a retry, and retries have a budget; leaving a queue is none. */
  #mayTry(): boolean {
    if (this.#tried.length > attemptsMax) return false
    return !this.#isRetry || this.#parts.budget.spend()
  }

  /** Null when the worker is full, or dies while the request waits. */
  async #slotAt(worker: Worker, claim: Claim, signal: AbortSignal): Promise<Slot | null> {
    const free = worker.queue.take(claim)
    if (free) return free
    const { clock } = this.#parts
    const leave = new JoinedSignal(signal, worker.downSignal)
    const timer = setTimeout(() => leave.abort(worker.queue.full()), this.#waitLeftMs).unref()
    const startedMs = clock.monotonicMs()
    try {
      return await worker.queue.acquire(claim, leave.signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof Fault && error.code === "overloaded") this.#refusals.push(error)
      else this.#failures.push(error)
      return null
    } finally {
      clearTimeout(timer)
      leave.release()
      this.#waitLeftMs = Math.max(0, this.#waitLeftMs - (clock.monotonicMs() - startedMs))
    }
  }

  #exhausted(): Fault {
    const lastFailure = this.#failures.at(-1)
    if (lastFailure === undefined && this.#refusals.length > 0)
      return new Fault(
        "overloaded",
        "Cannot take the request: every worker that could serve it is full; try again later",
        { retryAfterMs: Math.min(...this.#refusals.map(({ retryAfterMs }) => retryAfterMs ?? 1_000)) },
      )
    // Where there was nothing to route, what the only worker said tells more.
    if (this.#parts.workers.length === 1 && lastFailure instanceof Fault) return lastFailure
    return new Fault(
      "routing_failed",
      lastFailure === undefined
        ? "Cannot run the request: no worker in the regions allowed for it is healthy; try again later"
        : "Cannot run the request: every worker that was tried failed; try again later",
      lastFailure === undefined ? {} : { cause: lastFailure },
    )
  }
}
