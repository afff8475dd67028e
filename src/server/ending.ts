/** How a request ends before its answer: the client leaves, its time is up, or the server stops. */
import { Fault } from "../contract/errors.ts"

/** What a handler gets to end by itself when its time is up. */
const deadlineSlackMs = 2_000

export class Ending {
  readonly deadlineMs: number
  /** Its time can no longer run out: the answer is given, or the time is over. */
  isSettled = false
  readonly #controller = new AbortController()
  #late: ((reason: unknown) => void) | undefined
  #slack: NodeJS.Timeout | undefined

  constructor(deadlineMs: number) {
    this.deadlineMs = deadlineMs
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller.abort(reason)
    const late = this.#late
    if (late) this.#slack ??= setTimeout(() => late(this.signal.reason), deadlineSlackMs)
  }

  /** Whatever a request waits for, it is answered soon after its end; a handler that heeds its signal is quicker. */
  whenLate(give: (reason: unknown) => void): void {
    this.#late = give
  }

  /** The work is over: nothing can come too late any more. */
  release(): void {
    this.isSettled = true
    this.#late = undefined
    clearTimeout(this.#slack)
  }
}

/** The requests in flight. All have the same time, so the oldest is the first to be late, and one timer serves them all. */
export class Endings {
  readonly #timeoutMs: number
  /** Until their last byte has left, oldest first. */
  readonly #open = new Set<Ending>()
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  begin(): Ending {
    const ending = new Ending(performance.now() + this.#timeoutMs)
    this.#open.add(ending)
    if (!this.#timer) this.#watch(this.#timeoutMs)
    return ending
  }

  /** Nothing more will be sent. */
  closed(ending: Ending): void {
    this.#open.delete(ending)
  }

  abortAll(reason: () => Fault): void {
    for (const ending of this.#open) ending.abort(reason())
  }

  #watch(forMs: number): void {
    this.#timer = setTimeout(() => this.#endLate(), forMs).unref()
  }

  #endLate(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const ending of this.#open) {
      if (ending.isSettled) continue
      if (ending.deadlineMs > nowMs) {
        this.#watch(ending.deadlineMs - nowMs)
        return
      }
      ending.isSettled = true
      ending.abort(new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed"))
    }
  }
}
