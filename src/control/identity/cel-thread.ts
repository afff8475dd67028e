/** One worker for CEL at a time: runs a job within its deadline, or is killed and replaced. */
import { createHash } from "node:crypto"
import { setImmediate as afterMessages } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { type PolicyText, expressionsOf } from "./cel.ts"
import type { CelJob, CelReply } from "./cel-worker.ts"

interface Bounds {
  readonly deadlineMs: number
  /** A job that had less of the processor by its deadline is not slow: the machine is busy, and it goes on. */
  readonly processorMs: number
  /** Then it is ended all the same. */
  readonly mostMs: number
}

/** What the check lets pass takes some 80 ms of the processor to compile the first time; what takes longer was made to. */
const compiling: Bounds = { deadlineMs: 200, processorMs: 200, mostMs: 2000 }
/** To compile and to run stay together under the 300 ms that a workload may wait for a refusal. */
const boundsOf: Readonly<Record<CelJob["kind"], Bounds>> = {
  run: { deadlineMs: 100, processorMs: 25, mostMs: 200 },
  prepare: compiling,
  check: compiling,
}
const preparedMax = 1000
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
  /** Processor time that it had used when its last job ended. */
  usage: NodeJS.CpuUsage
  /** Digests of the policies that it has compiled. */
  readonly prepared: Set<string>
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
    if (job.kind === "run") await this.#prepare(started, job.policy)
    return await this.#send(started, job)
  }

  async #prepare(started: Started, policy: PolicyText): Promise<void> {
    const key = createHash("sha256").update(JSON.stringify(policy)).digest("base64")
    if (started.prepared.has(key)) return
    // Each has a deadline of its own, so that a long policy of good ones passes, as it did when it was saved.
    for (const { text } of expressionsOf(policy)) await this.#send(started, { kind: "prepare", text })
    if (started.prepared.size >= preparedMax) started.prepared.clear()
    started.prepared.add(key)
  }

  async #send(started: Started, job: CelJob): Promise<CelReply> {
    const { worker } = started
    const bounds = boundsOf[job.kind]
    return await new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        ended.abort()
        worker.off("message", onMessage).off("error", onError).off("exit", onExit)
        finish()
      }
      const stop = (reason: string): void => {
        if (ended.signal.aborted) return
        settle(() => {
          // Its successor starts now, so that the next job does not wait for it.
          this.#started = this.#start()
          void worker.terminate()
          reject(new CelStopped(reason))
        })
      }
      const onMessage = (reply: CelReply): void =>
        settle(() => {
          started.usage = reply.usage
          resolve(reply)
        })
      const onError = (): void => stop("it needs too much memory")
      const onExit = (): void => stop("it ended its worker")
      const ended = new AbortController()
      worker.on("message", onMessage).on("error", onError).on("exit", onExit)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      worker.postMessage(job)
      void watch(started, bounds, ended.signal).then(() =>
        stop(`it takes longer than ${bounds.deadlineMs} ms`),
      )
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

/** Resolves when the job has had its time, or is over. */
async function watch({ worker, usage }: Started, bounds: Bounds, ended: AbortSignal): Promise<void> {
  const { deadlineMs, processorMs, mostMs } = bounds
  const startedMs = performance.now()
  let leftMs = deadlineMs
  while (leftMs > 0) {
    await pause(leftMs, ended)
    // An answer that came while this thread was busy is waiting to be read: it counts.
    await afterMessages()
    const waitableMs = mostMs - (performance.now() - startedMs)
    if (ended.aborted || waitableMs <= 0) return
    const { user, system } = await worker.cpuUsage(usage).catch(() => ({ user: Infinity, system: 0 }))
    leftMs = Math.min(waitableMs, processorMs - (user + system) / 1000)
  }
}

/** A timer that ends with the job, so that nothing is left behind. */
async function pause(ms: number, ended: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, Math.ceil(ms))
    ended.addEventListener(
      "abort",
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
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
    worker.once("message", ({ usage }: CelReply) => {
      clearTimeout(timer)
      worker.off("error", fail)
      const started = { worker, usage, prepared: new Set<string>(), isGone: false }
      worker.once("exit", () => (started.isGone = true))
      resolve(started)
    })
  })
}
