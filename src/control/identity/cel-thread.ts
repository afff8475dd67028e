/** One worker for CEL at a time: runs a job within its deadline, or is killed and replaced. */
import { createHash } from "node:crypto"
import { setImmediate as afterMessages } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import type { PolicyText } from "./cel.ts"
import type { CelJob, CelReply } from "./cel-worker.ts"

/** To run is what workloads wait for; to check and compile is done when a policy is new. */
const deadlineMsOf = { run: 200, prepare: 1000, check: 1000 } as const
/** A job that got less of the processor than this part of its time is not slow: the machine is busy, and it gets more. */
const fairShare = 0.25
const patienceMs = 2000
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
}

export class CelThread {
  #started: Promise<Started> | null = null
  #ready = false

  /** Whether a job would run at once, without waiting for a worker to start. */
  get ready(): boolean {
    return this.#ready
  }

  /** One job at a time. Throws CelStopped when it had to be ended. */
  async run(job: CelJob): Promise<CelReply> {
    const started = await (this.#started ??= this.#start())
    if (job.kind === "run") await this.#prepare(started, job.policy)
    return await this.#send(started, job)
  }

  async #prepare(started: Started, policy: PolicyText): Promise<void> {
    const key = createHash("sha256").update(JSON.stringify(policy)).digest("base64")
    if (started.prepared.has(key)) return
    await this.#send(started, { kind: "prepare", policy })
    if (started.prepared.size >= preparedMax) started.prepared.clear()
    started.prepared.add(key)
  }

  async #send(started: Started, job: CelJob): Promise<CelReply> {
    const { worker } = started
    const deadlineMs = deadlineMsOf[job.kind]
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
      void watch(started, deadlineMs, ended.signal).then(() => stop(`it takes longer than ${deadlineMs} ms`))
    })
  }

  async close(): Promise<void> {
    const started = await this.#started?.catch(() => null)
    await started?.worker.terminate()
  }

  #start(): Promise<Started> {
    const become = (started: Promise<Started> | null, ready: boolean): void => {
      if (this.#started !== starting) return
      this.#started = started
      this.#ready = ready
    }
    this.#ready = false
    const starting = startWorker(() => become(null, false))
    starting.then(
      () => become(starting, true),
      () => become(null, false),
    )
    return starting
  }
}

/** Resolves when the job has had its time, or is over. */
async function watch({ worker, usage }: Started, deadlineMs: number, ended: AbortSignal): Promise<void> {
  const startedMs = performance.now()
  let leftMs = deadlineMs
  while (leftMs > 0) {
    await pause(leftMs, ended)
    // An answer that came while this thread was busy is waiting to be read: it counts.
    await afterMessages()
    if (ended.aborted || performance.now() - startedMs >= patienceMs) return
    const { user, system } = await worker.cpuUsage(usage).catch(() => ({ user: Infinity, system: 0 }))
    leftMs = deadlineMs * fairShare - (user + system) / 1000
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

async function startWorker(onGone: () => void): Promise<Started> {
  const worker = new Worker(new URL("./cel-worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: heapMib / 4 },
  })
  worker.unref()
  // One that dies while it is idle is replaced by the next job; while it works, the job hears of it too.
  worker.on("error", () => {})
  worker.once("exit", onGone)
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
      resolve({ worker, usage, prepared: new Set() })
    })
  })
}
