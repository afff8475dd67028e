/** How a request ends before its answer: the client leaves, its time is up, or the server stops. */
import { Fault } from "../contract/errors.ts"

/** What a handler gets to end by itself when its time is up. */
const deadlineSlackMs = 2_000

export class Ending {
  readonly #controller = new AbortController()
  readonly #deadline: NodeJS.Timeout
  #late: PromiseWithResolvers<never> | undefined
  #slack: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#deadline = setTimeout(endLate, timeoutMs, this).unref()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: Fault): void {
    this.#controller.abort(reason)
    const late = this.#late
    if (late) this.#slack ??= setTimeout(() => late.reject(this.signal.reason), deadlineSlackMs)
  }

  /** Whatever a request waits for, it is answered soon after its end; a handler that heeds its signal is quicker. */
  async orLate<Output>(work: Promise<Output>): Promise<Output> {
    this.#late = Promise.withResolvers<never>()
    try {
      return await Promise.race([work, this.#late.promise])
    } finally {
      this.#late = undefined
      clearTimeout(this.#slack)
    }
  }

  /** The answer is given: its time cannot run out any more. */
  release(): void {
    clearTimeout(this.#deadline)
  }
}

function endLate(ending: Ending): void {
  ending.abort(new Fault("inference_failed", "Cannot answer in time: the deadline of the request passed"))
}
