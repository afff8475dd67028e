/**
 * Takes one piece of work from worker to worker, along its plan, until one serves it or none is left:
 *
 *   choose a worker: the plan's regions in order, at most two workers of each
 *   -> wait for a slot in its queue, ask its circuit breaker: from here on it is an Attempt
 *   -> prepare the work there -> run it (router.ts)
 *
 * A failure of the worker at any step goes on with the next one, within the retry budget. A mistake of the request, or a
 * caller that goes away, ends it. When no worker is left it is `overloaded` if all were full, else `routing_failed`.
 */
import type { Clock } from "../../base/clock.ts"
import type { Region } from "../../base/regions.ts"
import { Fault } from "../../contract/errors.ts"
import { type Permit, type Worker, type WorkerEngines, type WorkerPool, JoinedSignal } from "./worker.ts"
import { type Span, withSpan } from "../../base/telemetry.ts"
import type { Slot, SlotRequest } from "./queue.ts"
import type { RequestTrace } from "../telemetry.ts"

export interface RouteParts {
  readonly plan: readonly Region[]
  readonly pool: WorkerPool
  readonly clock: Clock
  readonly trace: RequestTrace
  /** How long the request may wait in queues, all of them together. */
  readonly queueWaitMs: number
  /** Told where the request is being worked on. */
  readonly onPlaced: (region: string) => void
  /** Told of every try that failed because of its worker. */
  readonly onFailure: (worker: Worker, error: unknown) => void
}

export interface Work<Prepared> {
  readonly slot: SlotRequest
  /** A further answer of a request that has a slot already needs none of its own. */
  readonly sharesSlot: boolean
  /** What later requests may share, where there is such a thing. */
  readonly prefix: string | null
  readonly prepare: (engines: WorkerEngines, signal: AbortSignal) => Promise<Prepared>
}

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
  /** What a worker said that can never do this. */
  #unable: Fault | null = null
  readonly #failures: unknown[] = []
  #regionAt = 0
  #triedInRegion = 0
  #isRetry = false
  #waitLeftMs: number
  #current: Attempt | null = null

  constructor(parts: RouteParts) {
    this.#parts = parts
    this.#waitLeftMs = parts.queueWaitMs
  }

  /** Prepares the work at the next worker that can; may be called again after a failed run. */
  async place<Prepared>(work: Work<Prepared>, signal: AbortSignal): Promise<Placed<Prepared>> {
    const { pool, onPlaced } = this.#parts
    const prefixKey = pool.prefixKey(work.slot.organizationId, work.prefix)
    for (;;) {
      const attempt = await this.#begin(work, prefixKey, signal)
      this.#current = attempt
      let prepared: Prepared
      try {
        prepared = await attempt.step(signal, (either) => work.prepare(attempt.worker.engines, either))
      } catch (error) {
        this.failed(attempt, error, signal)
        continue
      }
      if (prefixKey !== null) pool.rememberPrefix(prefixKey, attempt.worker)
      onPlaced(attempt.worker.regionId)
      return { prepared, attempt }
    }
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
      case "unable":
        // Another worker of the model may speak a dialect that can.
        this.#unable = error as Fault
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

  async #begin(work: Work<unknown>, prefixKey: string | null, signal: AbortSignal): Promise<Attempt> {
    const { clock, trace } = this.#parts
    for (;;) {
      signal.throwIfAborted()
      const worker = this.#chooseWorker(prefixKey, work.slot.tokens)
      let slot: Slot | null
      trace.enter("queue")
      try {
        slot = work.sharesSlot ? worker.queue.share(work.slot) : worker.queue.take(work.slot)
        slot ??= await this.#waitForSlot(worker, work.slot, signal)
      } finally {
        trace.leave("queue")
      }
      if (!slot) continue
      const permit = worker.breaker.request()
      if (permit) return new Attempt(worker, slot, permit, clock, trace)
      slot.release()
    }
  }

  #chooseWorker(prefixKey: string | null, tokens: number): Worker {
    const { trace } = this.#parts
    trace.enter("route")
    try {
      const worker = this.#nextWorker(prefixKey, tokens)
      if (!worker || !this.#mayTry()) throw this.#exhausted()
      return worker
    } finally {
      trace.leave("route")
    }
  }

  #nextWorker(prefixKey: string | null, tokens: number): Worker | undefined {
    const { plan, pool } = this.#parts
    for (; this.#regionAt < plan.length; this.#regionAt++, this.#triedInRegion = 0) {
      if (this.#triedInRegion >= workersPerRegionMax) continue
      const candidates = pool
        .inRegion(plan[this.#regionAt]?.id ?? "")
        .filter((worker) => worker.isAvailable && !this.#tried.includes(worker))
      const worker = pool.choose(candidates, prefixKey, tokens)
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
    return !this.#isRetry || this.#parts.pool.takeRetry()
  }

  /** Null when the worker is full, or dies while the request waits. */
  async #waitForSlot(worker: Worker, request: SlotRequest, signal: AbortSignal): Promise<Slot | null> {
    const { clock, trace } = this.#parts
    const leave = new JoinedSignal(signal, worker.downSignal)
    const timer = setTimeout(() => leave.abort(worker.queue.full()), this.#waitLeftMs).unref()
    const startedMs = clock.monotonicMs()
    try {
      return await worker.queue.acquire(request, leave.signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      trace.add({ region: worker.regionId, result: codeOf(error), ms: clock.monotonicMs() - startedMs })
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
    if (lastFailure === undefined && this.#refusals.length === 0 && this.#unable) return this.#unable
    if (lastFailure === undefined && this.#refusals.length > 0)
      return new Fault(
        "overloaded",
        "Cannot take the request: every worker that could serve it is full; try again later",
        { retryAfterMs: Math.min(...this.#refusals.map(({ retryAfterMs }) => retryAfterMs ?? 1_000)) },
      )
    // Where there was nothing to route, what the only worker said tells more.
    if (this.#parts.pool.workers.length === 1 && lastFailure instanceof Fault) return lastFailure
    return new Fault(
      "routing_failed",
      lastFailure === undefined
        ? "Cannot run the request: no worker in the regions allowed for it is healthy; try again later"
        : "Cannot run the request: every worker that was tried failed; try again later",
      lastFailure === undefined ? {} : { cause: lastFailure },
    )
  }
}

/** What a failed try says: about the request, about how full the worker is, or about the worker. */
type FailureKind = "caller" | "full" | "unable" | "worker"

/** One try at one worker: its slot, its permit from the breaker, its time limit, and how it ended. */
export class Attempt {
  readonly worker: Worker
  readonly #slot: Slot
  readonly #permit: Permit
  readonly #clock: Clock
  readonly #trace: RequestTrace
  readonly #stop: JoinedSignal
  readonly #timer: NodeJS.Timeout | undefined
  readonly #span: Span | undefined
  #engineMs = 0
  #isOver = false

  constructor(worker: Worker, slot: Slot, permit: Permit, clock: Clock, trace: RequestTrace) {
    this.worker = worker
    this.#slot = slot
    this.#permit = permit
    this.#clock = clock
    this.#trace = trace
    this.#stop = new JoinedSignal(worker.downSignal)
    // Only remote workers have a time limit.
    this.#span = trace.span?.child("engine", worker.attemptTimeoutMs === null ? "internal" : "client")
    this.#span?.set({ "umpire.worker": worker.id, "umpire.region": worker.regionId })
    if (worker.attemptTimeoutMs !== null)
      this.#timer = setTimeout(() => this.#stop.abort(tooSlow()), worker.attemptTimeoutMs).unref()
  }

  /** Aborted when the caller goes away, the worker is found dead, or time is up; until the try has ended. */
  joined(signal: AbortSignal): JoinedSignal {
    this.#stop.listenTo(signal)
    return this.#stop
  }

  /** Runs a step of the work for as long as its joined signal allows, also one that does not heed it. */
  step<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const either = this.joined(signal)
    either.signal.throwIfAborted()
    return this.inEngine(() => either.until(work(either.signal)))
  }

  /** Counts the time of a call to the engine. */
  async inEngine<Result>(work: () => Promise<Result>): Promise<Result> {
    const startedMs = this.#clock.monotonicMs()
    this.#trace.enter("engine")
    try {
      return await withSpan(this.#span, work)
    } finally {
      this.#trace.leave("engine")
      this.#engineMs += this.#clock.monotonicMs() - startedMs
    }
  }

  /** The request was tokenised: what it needs is known. */
  measured(tokens: number): void {
    this.#slot.resize(tokens)
  }

  /** The first byte came: from now on only the engine's own limits and the caller's deadline hold. */
  started(): void {
    clearTimeout(this.#timer)
    this.#trace.begunToAnswer()
    this.worker.lastAnswerMs = this.#clock.monotonicMs()
  }

  succeeded(): void {
    this.started()
    this.#permit.succeeded()
    this.#end("success")
  }

  /** Returns what kind of failure it was; null when the caller went away, which says nothing about the worker. */
  failed(error: unknown, signal: AbortSignal): FailureKind | null {
    const kind = signal.aborted ? null : failureKind(error)
    if (kind === "worker") {
      this.worker.failures++
      this.#permit.failed()
    } else if (kind === "caller") this.#permit.succeeded()
    else this.#permit.abandoned()
    this.#end(kind === null ? "abandoned" : codeOf(error))
    return kind
  }

  /** Ends it, wherever it stands, without a word about the worker. */
  abandon(): void {
    this.#permit.abandoned()
    this.#end("abandoned")
  }

  /** The first end counts; later ones only make sure that nothing is held. */
  #end(result: string): void {
    if (!this.#isOver) {
      this.#trace.add({ region: this.worker.regionId, result, ms: this.#engineMs })
      this.worker.countAttempt(result)
      if (result !== "success") this.#span?.fail(result)
      this.#span?.end()
    }
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stop.release()
    this.#slot.release()
  }
}

const codeOf = (error: unknown): string => (error instanceof Fault ? error.code : "internal")

function failureKind(error: unknown): FailureKind {
  if (!(error instanceof Fault)) return "worker"
  if (error.status === 429) return "full"
  if (error.code === "decisions_unsupported") return "unable"
  return error.status < 500 ? "caller" : "worker"
}

const tooSlow = (): Fault =>
  new Fault("inference_failed", "Cannot go on: the worker did not begin to answer in time")
