/** One try at one worker: its place, its leave from the breaker, its time limit, and how it ended. */
import type { Clock } from "../../base/clock.ts"
import { Fault } from "../../contract/errors.ts"
import type { Permit } from "./breaker.ts"
import type { Slot } from "./queue.ts"
import { JoinedSignal } from "./abort.ts"
import type { Worker } from "./worker.ts"

/** What a failed try says: about the request, about how full the worker is, or about the worker. */
type FailureKind = "caller" | "full" | "worker"

function failureKind(error: unknown): FailureKind {
  if (!(error instanceof Fault)) return "worker"
  if (error.status === 429) return "full"
  return error.status < 500 ? "caller" : "worker"
}

export class Attempt {
  readonly worker: Worker
  readonly #slot: Slot
  readonly #permit: Permit
  readonly #clock: Clock
  readonly #timer: NodeJS.Timeout | undefined
  /** Made when it is needed: signals and listening to them are much of what a short request costs. */
  #stop: JoinedSignal | null = null

  constructor(worker: Worker, slot: Slot, permit: Permit, clock: Clock) {
    this.worker = worker
    this.#slot = slot
    this.#permit = permit
    this.#clock = clock
    if (worker.attemptTimeoutMs !== null)
      this.#timer = setTimeout(() => this.#stopped().abort(tooSlow()), worker.attemptTimeoutMs).unref()
  }

  #stopped(): JoinedSignal {
    this.#stop ??= new JoinedSignal(this.worker.downSignal)
    return this.#stop
  }

  /** Aborted when the caller goes away, the worker is found dead, or time is up; until the try has ended. */
  joined(signal: AbortSignal): JoinedSignal {
    const stop = this.#stopped()
    stop.listenTo(signal)
    return stop
  }

  /** Runs a step of the work for as long as its joined signal allows. */
  step<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    try {
      signal.throwIfAborted()
      if (this.worker.watchesItself) return work(signal)
      const either = this.joined(signal)
      either.signal.throwIfAborted()
      return either.until(work(either.signal))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The request was tokenised: what it needs is known. */
  measured(tokens: number): void {
    this.#slot.resize(tokens)
  }

  /** The first byte came: from now on only the engine's own limits and the caller's deadline hold. */
  started(): void {
    clearTimeout(this.#timer)
    this.worker.lastAnswerMs = this.#clock.monotonicMs()
  }

  succeeded(): void {
    this.started()
    this.#permit.succeeded()
    this.#end()
  }

  /** Answers what kind of failure it was; null when the caller went away, which says nothing about the worker. */
  failed(error: unknown, signal: AbortSignal): FailureKind | null {
    const kind = signal.aborted ? null : failureKind(error)
    if (kind === "worker") {
      this.worker.failures++
      this.#permit.failed()
    } else if (kind === "caller") this.#permit.succeeded()
    else this.#permit.abandoned()
    this.#end()
    return kind
  }

  /** Ends it, wherever it stands, without a word about the worker. */
  abandon(): void {
    this.#permit.abandoned()
    this.#end()
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#stop?.release()
    this.#slot.release()
  }
}

const tooSlow = (): Fault =>
  new Fault("inference_failed", "Cannot go on: the worker did not begin to answer in time")
