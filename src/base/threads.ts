/** A few threads for work that would hold up every other request: started when needed, ended when idle, bounded queue. */
import { Worker } from "node:worker_threads"
import { Fault, type FaultCode, type FaultOptions } from "../contract/errors.ts"

export interface Threads<Job, Result> {
  /** Throws what the work throws as a Fault; `overloaded` when too many wait, and the signal's reason when it is aborted. */
  run(owner: string, job: Job, signal: AbortSignal): Promise<Result>
}

interface ThreadsOptions {
  /** The module of a thread; it calls `answerJobs`. */
  readonly entry: URL
  readonly threadsMax?: number
  readonly waitingMax?: number
  /** How long a thread without work is kept. */
  readonly idleMs?: number
}

/** What a thread answers. A Fault loses its class on the way, so that its parts are sent. */
export type ThreadAnswer<Result> =
  | { readonly kind: "done"; readonly result: Result }
  | { readonly kind: "refused"; readonly fault: SentFault }
  | { readonly kind: "failed"; readonly error: unknown }

interface SentFault {
  readonly code: FaultCode
  readonly message: string
  readonly options: FaultOptions
}

/** One organization's work takes one of them, so that there is another for everyone else. */
const threadsMaxDefault = 2
const waitingMaxDefault = 64
const idleMsDefault = 60_000
const retryAfterMs = 1_000

interface Waiting<Job, Result> {
  readonly owner: string
  readonly job: Job
  resolve(result: Result): void
  reject(error: unknown): void
}

export function createThreads<Job, Result>(options: ThreadsOptions): Threads<Job, Result> {
  const { threadsMax = threadsMaxDefault, waitingMax = waitingMaxDefault } = options
  const seats = Array.from({ length: threadsMax }, () => new Seat<Job, Result>(options))
  const waiting: Waiting<Job, Result>[] = []

  const next = (): void => {
    for (const seat of seats) {
      if (seat.owner !== null) continue
      const at = waiting.findIndex(({ owner }) => seats.every((other) => other.owner !== owner))
      const [turn] = at < 0 ? [] : waiting.splice(at, 1)
      if (!turn) return
      void seat.work(turn.owner, turn.job).then((answer) => {
        settle(turn, answer)
        next()
      })
    }
  }

  const queue = async (owner: string, job: Job, signal: AbortSignal): Promise<Result> => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const turn = { owner, job, resolve, reject }
    // Work that has begun goes on to its end, which is near: nobody hears of it.
    const leave = (): void => {
      const at = waiting.indexOf(turn)
      if (at >= 0) waiting.splice(at, 1)
      reject(signal.reason)
    }
    signal.addEventListener("abort", leave, { once: true })
    waiting.push(turn)
    next()
    return await promise.finally(() => signal.removeEventListener("abort", leave))
  }

  return {
    async run(owner, job, signal) {
      signal.throwIfAborted()
      if (waiting.length >= waitingMax)
        throw new Fault("overloaded", "Cannot read the request: too many large ones wait; try again later", {
          retryAfterMs,
        })
      return await queue(owner, job, signal)
    },
  }
}

/** A place for one thread, which comes and goes; it keeps the process alive only while it works. */
class Seat<Job, Result> {
  /** Whose work it does; null when it is free. */
  owner: string | null = null
  readonly #entry: URL
  readonly #idleMs: number
  #worker: Worker | null = null
  #answered: (answer: ThreadAnswer<Result>) => void = () => undefined
  #idle: NodeJS.Timeout | undefined

  constructor({ entry, idleMs = idleMsDefault }: ThreadsOptions) {
    this.#entry = entry
    this.#idleMs = idleMs
  }

  /** Never rejects: a thread that cannot be had has failed the work. */
  async work(owner: string, job: Job): Promise<ThreadAnswer<Result>> {
    this.owner = owner
    clearTimeout(this.#idle)
    try {
      return await this.#run(job)
    } catch (error) {
      return { kind: "failed", error }
    } finally {
      this.#idle = setTimeout(() => this.#end(), this.#idleMs).unref()
      this.owner = null
    }
  }

  async #run(job: Job): Promise<ThreadAnswer<Result>> {
    const worker = (this.#worker ??= this.#start())
    worker.ref()
    const answer = await new Promise<ThreadAnswer<Result>>((resolve) => {
      this.#answered = resolve
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      worker.postMessage(job)
    })
    worker.unref()
    return answer
  }

  /** A thread that dies fails the work it had; the next work starts another. */
  #start(): Worker {
    const worker = new Worker(this.#entry)
    const gone = (error: unknown): void => {
      // Ended because it was idle, or an error was heard before its exit.
      if (this.#worker !== worker) return
      this.#worker = null
      this.#answered({ kind: "failed", error })
    }
    worker.on("message", (answer: ThreadAnswer<Result>) => this.#answered(answer))
    worker.once("error", gone)
    worker.once("exit", () => gone(new Error("Cannot finish the work: its thread ended")))
    return worker
  }

  #end(): void {
    const worker = this.#worker
    this.#worker = null
    void worker?.terminate()
  }
}

function settle<Job, Result>(turn: Waiting<Job, Result>, answer: ThreadAnswer<Result>): void {
  switch (answer.kind) {
    case "done":
      return turn.resolve(answer.result)
    case "refused": {
      const { code, message, options } = answer.fault
      return turn.reject(new Fault(code, message, options))
    }
    case "failed":
      return turn.reject(answer.error)
  }
}
