/** One worker for CEL at a time: runs a job, and is replaced when it used up its memory or does not answer. */
import { Worker } from "node:worker_threads"
import type { CelJob, CelReply } from "./cel-worker.ts"

/** A worker ends its steps by itself; this is for one that cannot, and then the worker ends with it. */
const silentMs = 30_000
/** Starting a worker is our own work, not the policy's; this only ends a start that hangs. */
const startMs = 20_000
/** Enough for claims and rules; a policy that builds more is stopped before it hurts the process. */
const heapMib = 64

/** The policy took too long or too much memory. */
export class CelStopped extends Error {
  override readonly name = "CelStopped"
}

interface Started {
  readonly worker: Worker
  isGone: boolean
}

/** Keeps one worker more than is at work, so that nobody waits for the successor of one that was killed. */
export class CelSpares {
  #next: Promise<Started> | null = null
  #isClosed = false

  /** Answers at once where the spare is ready; another is started in its place. */
  async take(): Promise<Started> {
    const next = this.#next
    this.#next = null
    const spare = await next?.catch(() => null)
    const taken = spare && !spare.isGone ? spare : await startWorker()
    this.#refill()
    return taken
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const spare = await this.#next?.catch(() => null)
    await spare?.worker.terminate()
  }

  #refill(): void {
    if (this.#isClosed || this.#next) return
    this.#next = startWorker()
    // Whoever takes it hears of its failure, and starts one of their own.
    this.#next.catch(() => undefined)
  }
}

export class CelThread {
  readonly #spares: CelSpares
  #started: Promise<Started> | null = null
  #ready = false

  constructor(spares: CelSpares) {
    this.#spares = spares
  }

  /** Whether a job would run at once, without waiting for a worker to start. */
  get ready(): boolean {
    return this.#ready
  }

  /** Starts its worker before there is a job for it. */
  async warm(): Promise<void> {
    await (this.#started ??= this.#start())
  }

  /** One job at a time. Throws CelStopped when it had to be ended. */
  async run(job: CelJob): Promise<CelReply> {
    let started = await (this.#started ??= this.#start())
    if (started.isGone) started = await (this.#started = this.#start())
    const reply = await this.#send(started, job)
    if (reply.kind === "stopped") throw new CelStopped(reply.reason)
    return reply
  }

  async #send({ worker }: Started, job: CelJob): Promise<CelReply> {
    return await new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        clearTimeout(timer)
        worker.off("message", onMessage).off("error", onError).off("exit", onExit)
        finish()
      }
      const stop = (reason: string): void =>
        settle(() => {
          // Its successor starts now, so that the next job does not wait for it.
          this.#started = this.#start()
          void worker.terminate()
          reject(new CelStopped(reason))
        })
      const onMessage = (reply: CelReply): void => settle(() => resolve(reply))
      const onError = (): void => stop("it needs too much memory")
      const onExit = (): void => stop("it ended its worker")
      const timer = setTimeout(() => stop("it does not answer"), silentMs)
      worker.on("message", onMessage).on("error", onError).on("exit", onExit)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      worker.postMessage(job)
    })
  }

  async close(): Promise<void> {
    const started = await this.#started?.catch(() => null)
    await started?.worker.terminate()
  }

  #start(): Promise<Started> {
    this.#ready = false
    const starting = this.#spares.take()
    starting.then(
      () => {
        if (this.#started === starting) this.#ready = true
      },
      () => {
        if (this.#started === starting) this.#started = null
      },
    )
    return starting
  }
}

async function startWorker(): Promise<Started> {
  const worker = new Worker(new URL("./cel-worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: heapMib / 4 },
  })
  worker.unref()
  // One that dies while it is idle is replaced by the next job; while it works, the job hears of it too.
  worker.on("error", () => {})
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error("Cannot start a CEL worker: it does not answer")), startMs)
    const fail = (error: Error): void => {
      clearTimeout(timer)
      reject(error)
    }
    worker.once("error", fail)
    worker.once("message", () => {
      clearTimeout(timer)
      worker.off("error", fail)
      const started = { worker, isGone: false }
      worker.once("exit", () => (started.isGone = true))
      resolve(started)
    })
  })
}
