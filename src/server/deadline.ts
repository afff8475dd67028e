/** The deadline of a request, and its earlier ends: the client goes away, or the server stops. */
import { Fault } from "../contract/errors.ts"

/** What a handler gets to end by itself once its signal is aborted. */
const graceMs = 2_000

export class Deadline {
  readonly atMs: number
  /** It can no longer pass: the request is answered, or it has passed. */
  isSettled = false
  readonly #controller = new AbortController()
  readonly #overdue = Promise.withResolvers<never>()
  #timer: NodeJS.Timeout | undefined
  #isRacing = false

  constructor(atMs: number) {
    this.atMs = atMs
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller.abort(reason)
    if (this.#isRacing) this.#timer ??= setTimeout(() => this.#overdue.reject(this.signal.reason), graceMs)
  }

  /** The outcome of `work`, or the reason of the abort when `work` ignores its signal. The first outcome wins. */
  async race<Result>(work: Promise<Result>): Promise<Result> {
    this.#isRacing = true
    return await Promise.race([work, this.#overdue.promise])
  }

  /** The request is answered. */
  settle(): void {
    this.isSettled = true
    this.#isRacing = false
    clearTimeout(this.#timer)
  }
}

/** The deadlines of all requests in flight. All have the same length, so the oldest is first and one timer serves all. */
export class Deadlines {
  readonly #timeoutMs: number
  /** Until the last byte of their answer has left, oldest first. */
  readonly #open = new Set<Deadline>()
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  start(): Deadline {
    const deadline = new Deadline(performance.now() + this.#timeoutMs)
    this.#open.add(deadline)
    if (!this.#timer) this.#watch(this.#timeoutMs)
    return deadline
  }

  /** Nothing more will be sent. */
  remove(deadline: Deadline): void {
    this.#open.delete(deadline)
  }

  abortAll(reason: () => Fault): void {
    for (const deadline of this.#open) deadline.abort(reason())
  }

  #watch(forMs: number): void {
    this.#timer = setTimeout(() => this.#abortOverdue(), forMs).unref()
  }

  #abortOverdue(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const deadline of this.#open) {
      if (deadline.isSettled) continue
      if (deadline.atMs > nowMs) {
        this.#watch(deadline.atMs - nowMs)
        return
      }
      deadline.isSettled = true
      deadline.abort(
        new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed"),
      )
    }
  }
}
