/**
 * Takes one piece of work from worker to worker, along its plan, until one serves it or none is left:
 *
 *   choose a worker: the plan's regions in order, at most two workers of each
 *   -> wait for a slot in its queue, ask its circuit breaker: from here on it is an Attempt
 *   -> its engine tells the size of the work, the caller admits it, the engine runs it
 *
 * A failure of the worker at any step goes on with the next one, within the retry budget. A mistake of the request, a refusal
 * to admit it, or a caller that goes away, ends it. When no worker is left it is `overloaded` if all were full, else `routing_failed`.
 *
 * Every retry that a request can cause, from the inside out: work that dies with the process of its engine is run again there, once
 * (engine-client.ts), and a connection to a worker that could not be made is tried once more (http-client.ts); then come at most six
 * workers here, as long as the budget of their pool lasts, which is one retry for five requests (worker.ts); then the other models of
 * its stage, each once (stages.ts). A line of a batch may fail six times, with pauses that double (run-line.ts).
 */
import type { Clock } from "../../base/clock.ts"
import type { Region } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineCall, UnusableAnswer } from "../../engine/engine.ts"
import { type Permit, type Worker, type WorkerEngines, type WorkerPool, JoinedSignal } from "./worker.ts"
import { type Span, withSpan } from "../../base/telemetry.ts"
import type { Slot, SlotRequest } from "./queue.ts"
import type { RequestTrace } from "../telemetry.ts"

interface RouteDeps {
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

/** What the work asks of a worker. */
export interface Load<Size> {
  readonly slot: SlotRequest
  /** A further answer of a request that has a slot already needs none of its own. */
  readonly sharesSlot: boolean
  /** What later requests may share, where there is such a thing. */
  readonly prefix: string | null
  /** Once its size is known. */
  readonly tokensOf: (size: Size) => number
}

/** Tries at different workers that one request may make. */
const attemptsMax = 6
/** Workers of one region that one request may try. */
const workersPerRegionMax = 2

export class Route<Size = number> {
  readonly #deps: RouteDeps
  readonly #load: Load<Size>
  readonly #prefixKey: string | null
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

  constructor(deps: RouteDeps, load: Load<Size>) {
    this.#deps = deps
    this.#load = load
    this.#prefixKey = deps.pool.prefixKey(load.slot.organizationId, load.prefix)
    this.#waitLeftMs = deps.queueWaitMs
  }

  /** Work that answers all at once. */
  async run<Admission, Result>(
    call: EngineCall<Size, Admission>,
    work: (engines: WorkerEngines, call: EngineCall<Size, Admission>) => Promise<Result>,
  ): Promise<Result> {
    for (;;) {
      const attempt = await this.#begin(call.signal)
      try {
        const result = await attempt.step(
          call.signal,
          async (signal) => await work(attempt.worker.engines, this.#callAt(attempt, call, signal)),
        )
        attempt.succeeded()
        return result
      } catch (error) {
        await this.#failed(attempt, error, call.signal)
      }
    }
  }

  /** Work that answers event by event. After the first a failure is the caller's to see: half an answer is not begun anew. */
  async *stream<Admission, Event>(
    call: EngineCall<Size, Admission>,
    work: (
      engines: WorkerEngines,
      call: EngineCall<Size, Admission>,
    ) => AsyncGenerator<Event, void, undefined>,
  ): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      const attempt = await this.#begin(call.signal)
      const either = attempt.joined(call.signal)
      let events: AsyncGenerator<Event, void, undefined> | undefined
      let hasAnswered = false
      let isOver = false
      try {
        const running = work(attempt.worker.engines, this.#callAt(attempt, call, either.signal))
        events = running
        for (;;) {
          const next = await attempt.inEngine(() => either.until(running.next()))
          if (next.done) break
          attempt.started()
          hasAnswered = true
          yield next.value
        }
        isOver = true
        attempt.succeeded()
        return
      } catch (error) {
        isOver = true
        await this.#failed(attempt, error, call.signal)
        if (hasAnswered) throw error
      } finally {
        // A reader that leaves ends the work and gives back the slot.
        if (!isOver) {
          either.abort(new Fault("inference_failed", "Cannot continue: the stream is no longer read"))
          await events?.return()
        }
        attempt.abandon()
      }
    }
  }

  /** Gives back whatever is still held; harmless at any time. */
  close(): void {
    this.#current?.abandon()
  }

  /** The caller's call, as the engine of one worker gets it. */
  #callAt<Admission>(
    attempt: Attempt,
    call: EngineCall<Size, Admission>,
    signal: AbortSignal,
  ): EngineCall<Size, Admission> {
    const { pool, onPlaced } = this.#deps
    const admit = async (size: Size, outputTokensMost?: number): Promise<Admission> => {
      if (attempt.isOver) throw new Error("The work went on elsewhere")
      attempt.measured(this.#load.tokensOf(size))
      if (this.#prefixKey !== null) pool.rememberPrefix(this.#prefixKey, attempt.worker)
      onPlaced(attempt.worker.regionId)
      return await attempt.admit(async () => await call.admit(size, outputTokensMost))
    }
    return { signal, admit }
  }

  /** Notes a failed try; throws when trying elsewhere would not help. */
  async #failed(attempt: Attempt, error: unknown, signal: AbortSignal): Promise<void> {
    // What is being admitted is known before anything is admitted anew, or given back.
    await attempt.admission
    if (attempt.refusal) {
      attempt.abandon()
      throw attempt.refusal.reason
    }
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
        this.#deps.onFailure(attempt.worker, error)
    }
  }

  async #begin(signal: AbortSignal): Promise<Attempt> {
    const { clock, trace } = this.#deps
    const { slot: request, sharesSlot } = this.#load
    for (;;) {
      signal.throwIfAborted()
      const worker = this.#chooseWorker()
      let slot: Slot | null
      trace.enter("queue")
      try {
        slot = sharesSlot ? worker.queue.share(request) : worker.queue.take(request)
        slot ??= await this.#waitForSlot(worker, request, signal)
      } finally {
        trace.leave("queue")
      }
      if (!slot) continue
      const permit = worker.breaker.request()
      if (permit) return (this.#current = new Attempt(worker, slot, permit, { clock, trace }))
      slot.release()
    }
  }

  #chooseWorker(): Worker {
    const { trace } = this.#deps
    trace.enter("route")
    try {
      const worker = this.#nextWorker()
      if (!worker || !this.#mayTry()) throw this.#exhausted()
      return worker
    } finally {
      trace.leave("route")
    }
  }

  #nextWorker(): Worker | undefined {
    const { plan, pool } = this.#deps
    for (; this.#regionAt < plan.length; this.#regionAt++, this.#triedInRegion = 0) {
      if (this.#triedInRegion >= workersPerRegionMax) continue
      const candidates = pool
        .inRegion(plan[this.#regionAt]?.id ?? "")
        .filter((worker) => worker.isAvailable && !this.#tried.includes(worker))
      const worker = pool.choose(candidates, this.#prefixKey, this.#load.slot.tokens)
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
    return !this.#isRetry || this.#deps.pool.takeRetry()
  }

  /** Null when the worker is full, or dies while the request waits. */
  async #waitForSlot(worker: Worker, request: SlotRequest, signal: AbortSignal): Promise<Slot | null> {
    const { clock, trace } = this.#deps
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
    if (lastFailure === undefined && this.#refusals.length > 0) {
      // A worker that is asked several times may answer some before it is full: those are paid.
      const paid = this.#refusals.findLast((refusal) => refusal instanceof UnusableAnswer)
      return new Fault(
        "overloaded",
        "Cannot take the request: every worker that could serve it is full; try again later",
        {
          retryAfterMs: Math.min(...this.#refusals.map(({ retryAfterMs }) => retryAfterMs ?? 1_000)),
          ...(paid ? { cause: paid } : {}),
        },
      )
    }
    // Where there was nothing to route, what the only worker said tells more.
    if (this.#deps.pool.workers.length === 1 && lastFailure instanceof Fault) return lastFailure
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
class Attempt {
  readonly worker: Worker
  readonly #slot: Slot
  readonly #permit: Permit
  readonly #clock: Clock
  readonly #trace: RequestTrace
  readonly #stop: JoinedSignal
  readonly #timer: NodeJS.Timeout | undefined
  readonly #span: Span | undefined
  /** Resolves when its caller has said whether it admits the work. */
  admission: Promise<unknown> = Promise.resolve()
  /** Why the caller does not. */
  refusal: { readonly reason: unknown } | null = null
  #engineMs = 0
  #enteredMs: number | null = null
  #isInEngine = false
  #isOver = false

  constructor(
    worker: Worker,
    slot: Slot,
    permit: Permit,
    { clock, trace }: Pick<RouteDeps, "clock" | "trace">,
  ) {
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

  get isOver(): boolean {
    return this.#isOver
  }

  /** Counts the time of a call to the engine. */
  async inEngine<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#isInEngine = true
    this.#enterEngine()
    try {
      return await withSpan(this.#span, work)
    } finally {
      this.#isInEngine = false
      this.#leaveEngine()
    }
  }

  /** Asks the caller; its time is not the engine's. */
  async admit<Admission>(ask: () => Promise<Admission>): Promise<Admission> {
    this.#leaveEngine()
    const asked = withSpan(this.#trace.span, ask)
    this.admission = asked.catch((reason: unknown) => (this.refusal = { reason }))
    try {
      return await asked
    } finally {
      if (this.#isInEngine) this.#enterEngine()
    }
  }

  #enterEngine(): void {
    this.#enteredMs = this.#clock.monotonicMs()
    this.#trace.enter("engine")
  }

  #leaveEngine(): void {
    if (this.#enteredMs === null) return
    this.#trace.leave("engine")
    this.#engineMs += this.#clock.monotonicMs() - this.#enteredMs
    this.#enteredMs = null
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
