/** One engine process seen from its parent: requests matched with replies, a watch on its pulse, and its end. */
import type { ChildProcess } from "node:child_process"
import { fork } from "node:child_process"
import { Fault } from "../../contract/errors.ts"
import type { ModelFacts } from "../engine.ts"
import type { FromEngine, ProcessStats, ToEngine } from "./protocol.ts"
import type { ScorerOptions, TextWork } from "./scorer.ts"

export interface WatchTimes {
  /** Without a pulse for this long the process is taken for dead. */
  readonly silenceMsMax: number
  /** A decode that runs longer than this is taken for stuck. */
  readonly decodeMsMax: number
  /** How long a process may take to end by itself before it is killed. */
  readonly endMsMax: number
}

/** The process ended before it answered: the work may be tried on another one. */
export class EngineGone extends Error {
  override readonly name = "EngineGone"
}

/** The process says that this model cannot be served. */
export class ModelRefused extends Error {
  override readonly name = "ModelRefused"
}

interface Pending {
  prepared(inputTokens: number): void
  scored(differences: Float64Array): void
  failed(error: unknown): void
}

const CHECK_INTERVAL_MS = 250

export class EngineProcess {
  /** Settles once: the facts of the loaded model, or ModelRefused, or EngineGone. */
  readonly ready: Promise<ModelFacts>
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #times: WatchTimes
  readonly #ready = Promise.withResolvers<ModelFacts>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #pending = new Map<number, Pending>()
  readonly #watch: NodeJS.Timeout
  #heardAtMs = performance.now()
  #stats: ProcessStats | undefined
  #gone = false
  #why = "it ended"

  constructor(options: ScorerOptions, times: WatchTimes) {
    this.#times = times
    this.ready = this.#ready.promise
    this.ended = this.#ended.promise
    // A failed start is reported to whoever awaits `ready`; nobody may.
    this.ready.catch(() => undefined)
    this.#child = fork(new URL("./child.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    })
    this.#child.on("message", (message: FromEngine) => this.#receive(message))
    this.#child.on("error", (error) => this.#end(`it could not be started or reached: ${error.message}`))
    this.#child.on("exit", (code, signal) =>
      this.#end(signal === null ? `it ended with ${code}` : `${signal} ended it`),
    )
    this.#watch = setInterval(() => this.#checkPulse(), CHECK_INTERVAL_MS)
    this.#watch.unref()
    this.#send({ kind: "open", options })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  get stats(): ProcessStats | undefined {
    return this.#stats
  }

  get alive(): boolean {
    return !this.#gone
  }

  prepare(id: number, work: TextWork): Promise<number> {
    return this.#request<number>({ kind: "prepare", id, work }, ({ resolve }) => ({ prepared: resolve }))
  }

  run(id: number): Promise<Float64Array> {
    return this.#request<Float64Array>({ kind: "run", id }, ({ resolve }) => ({ scored: resolve }))
  }

  /** Ends a job; whoever waits for it gets `reason`. */
  drop(id: number, reason: unknown): void {
    this.#pending.get(id)?.failed(reason)
    this.#pending.delete(id)
    if (!this.#gone) this.#send({ kind: "drop", id })
  }

  async close(): Promise<void> {
    if (this.#gone) return
    this.#child.kill("SIGTERM")
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), this.#times.endMsMax)
    await this.ended
    clearTimeout(kill)
  }

  #request<Result>(
    message: ToEngine & { id: number },
    replies: (settle: PromiseWithResolvers<Result>) => Partial<Pending>,
  ): Promise<Result> {
    if (this.#gone) return Promise.reject(this.#goneError())
    const settle = Promise.withResolvers<Result>()
    const unexpected = (): void => settle.reject(new Error("The engine process answered out of order"))
    this.#pending.set(message.id, {
      prepared: unexpected,
      scored: unexpected,
      failed: settle.reject,
      ...replies(settle),
    })
    this.#send(message)
    return settle.promise
  }

  #receive(message: FromEngine): void {
    this.#heardAtMs = performance.now()
    switch (message.kind) {
      case "ready":
        this.#ready.resolve(message.facts)
        return
      case "refused":
        this.#ready.reject(new ModelRefused(message.sentence))
        return
      case "pulse":
        this.#stats = message.stats
        if (message.decodingMs > this.#times.decodeMsMax) this.#kill("a decode did not end")
        return
      case "prepared":
        this.#take(message.id)?.prepared(message.inputTokens)
        return
      case "scored":
        this.#take(message.id)?.scored(message.differences)
        return
      case "failed": {
        const { code, sentence, ...options } = message.fault
        this.#take(message.id)?.failed(new Fault(code, sentence, options))
        return
      }
      default:
        message satisfies never
    }
  }

  /** Absent when the job was dropped while its reply was on the way. */
  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    return pending
  }

  #checkPulse(): void {
    if (performance.now() - this.#heardAtMs > this.#times.silenceMsMax) this.#kill("it fell silent")
  }

  #kill(why: string): void {
    this.#why = why
    this.#child.kill("SIGKILL")
  }

  #end(why: string): void {
    if (this.#gone) return
    this.#gone = true
    if (this.#why === "it ended") this.#why = why
    clearInterval(this.#watch)
    this.#ready.reject(this.#goneError())
    for (const pending of this.#pending.values()) pending.failed(this.#goneError())
    this.#pending.clear()
    this.#ended.resolve()
  }

  #goneError(): EngineGone {
    return new EngineGone(`The engine process is gone: ${this.#why}`)
  }

  #send(message: ToEngine): void {
    // A process that died meanwhile reports it through its exit event, which fails everything pending.
    this.#child.send(message, () => undefined)
  }
}
