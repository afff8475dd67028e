/** Local generation and embeddings as the gateway sees them: a process per model, started when first used. */
import { type ChildProcess, fork } from "node:child_process"
import { Fault } from "../../contract/errors.ts"
import type {
  EmbedEngine,
  EmbedWork,
  GenerateEngine,
  GenerateWork,
  GenerationEvent,
  GenerationUsage,
  PreparedEmbedding,
  PreparedGeneration,
} from "./generate.ts"
import { noGenerationUsage } from "./generate.ts"
import type { FromGenerator, GenerationOptions, ToGenerator } from "./protocol.ts"

/** Events are acknowledged in groups, well within the window. */
const TAKEN_GROUP = 256
const SILENCE_MS_MAX = 60_000
const LOAD_MS_MAX = 300_000
const END_MS_MAX = 5_000
/** How long an aborted generation may take to say what it used; a decode step of a large prompt is seconds. */
const STOP_MS_MAX = 10_000
const BACKOFF_MS = 1000

type ByKind<Kind extends FromGenerator["kind"]> = Extract<FromGenerator, { kind: Kind }>

interface Listener {
  receive(message: ByKind<"prepared" | "events" | "embedded" | "failed" | "stopped">): void
  gone(fault: Fault): void
}

interface LocalEngineOptions extends GenerationOptions {
  /** Makes the model's file before it is first opened, where it does not come as one. */
  readonly makeFile?: () => Promise<void>
  readonly onDeath?: (reason: string) => void
}

/** Both ports in one: a model either generates or embeds, and refuses the other. */
export class LocalEngine implements GenerateEngine {
  readonly #options: LocalEngineOptions
  #process: GeneratorProcess | undefined
  #lastDeathMs = -BACKOFF_MS
  #lastId = 0
  #closed = false

  constructor(options: LocalEngineOptions) {
    this.#options = options
  }

  /** Of the present process; undefined before first use. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  async prepare(work: GenerateWork, signal: AbortSignal): Promise<PreparedGeneration> {
    const process = await this.#running(signal)
    const id = ++this.#lastId
    const prepared = await process.ask(id, { kind: "prepare", id, work }, signal)
    return new LocalGeneration(process, id, prepared)
  }

  async prepareEmbedding(work: EmbedWork, signal: AbortSignal): Promise<PreparedEmbedding> {
    const process = await this.#running(signal)
    const id = ++this.#lastId
    const { inputTokens } = await process.ask(id, { kind: "prepare_embedding", id, work }, signal)
    return { inputTokens, run: async (runSignal) => await process.embed(id, runSignal) }
  }

  embedder(): EmbedEngine {
    return { prepare: (work, signal) => this.prepareEmbedding(work, signal), close: () => this.close() }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#process?.close()
  }

  async #running(signal: AbortSignal): Promise<GeneratorProcess> {
    signal.throwIfAborted()
    if (this.#closed) throw new Fault("inference_failed", "Cannot run the request: the engine is not running")
    await this.#options.makeFile?.()
    if (!this.#process?.alive) {
      if (performance.now() - this.#lastDeathMs < BACKOFF_MS)
        throw new Fault(
          "inference_failed",
          "Cannot run the request: the engine died and is not started again yet",
        )
      this.#process = new GeneratorProcess(this.#options, (reason) => {
        this.#lastDeathMs = performance.now()
        this.#options.onDeath?.(reason)
      })
    }
    const { ready } = this.#process
    const process = this.#process
    await untilAborted(ready, signal)
    return process
  }
}

class GeneratorProcess {
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #listeners = new Map<number, Listener>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #watch: NodeJS.Timeout
  readonly #onDeath: (reason: string) => void
  readonly #bornMs = performance.now()
  #heardMs = performance.now()
  #loaded = false
  #closing = false
  alive = true

  constructor(given: LocalEngineOptions, onDeath: (reason: string) => void) {
    const { onDeath: _onDeath, makeFile: _makeFile, ...options } = given
    this.#onDeath = onDeath
    this.ready = this.#ready.promise
    // Whoever awaits it hears of a failed start; nobody may.
    this.ready.catch(() => undefined)
    this.#child = fork(new URL("./child.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    })
    this.#child.on("message", (message: FromGenerator) => this.#receive(message))
    this.#child.on("error", (error) => this.#end(error.message))
    this.#child.on("exit", (code, signal) => this.#end(signal ?? `status ${code}`))
    this.#watch = setInterval(() => this.#checkPulse(), 1000)
    this.#watch.unref()
    this.send({ kind: "open", options })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  send(message: ToGenerator): void {
    // A process that died meanwhile reports it through its exit event, which fails everything that waits.
    if (this.alive) this.#child.send(message, () => undefined)
  }

  listen(id: number, listener: Listener): void {
    if (this.alive) this.#listeners.set(id, listener)
    else listener.gone(gone())
  }

  forget(id: number): void {
    this.#listeners.delete(id)
  }

  async ask(id: number, message: ToGenerator, signal: AbortSignal): Promise<ByKind<"prepared">> {
    const answer = Promise.withResolvers<ByKind<"prepared">>()
    this.listen(id, {
      receive: (reply) => {
        if (reply.kind === "prepared") answer.resolve(reply)
        else if (reply.kind === "failed") answer.reject(faultOf(reply))
      },
      gone: answer.reject,
    })
    this.send(message)
    try {
      return await untilAborted(answer.promise, signal)
    } catch (error) {
      this.send({ kind: "drop", id })
      throw error
    } finally {
      this.forget(id)
    }
  }

  async embed(id: number, signal: AbortSignal): Promise<readonly Float32Array[]> {
    const answer = Promise.withResolvers<readonly Float32Array[]>()
    this.listen(id, {
      receive: (reply) => {
        if (reply.kind === "embedded") answer.resolve(reply.vectors)
        else if (reply.kind === "failed") answer.reject(faultOf(reply))
      },
      gone: answer.reject,
    })
    this.send({ kind: "embed", id })
    try {
      return await untilAborted(answer.promise, signal)
    } finally {
      this.send({ kind: "drop", id })
      this.forget(id)
    }
  }

  async close(): Promise<void> {
    if (!this.alive) return
    this.#closing = true
    this.#child.kill("SIGTERM")
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), END_MS_MAX)
    await this.#ended.promise
    clearTimeout(kill)
  }

  #receive(message: FromGenerator): void {
    this.#heardMs = performance.now()
    switch (message.kind) {
      case "ready":
        this.#loaded = true
        this.#ready.resolve()
        return
      case "refused":
        this.#ready.reject(new Fault("inference_failed", message.sentence))
        return
      case "pulse":
        return
      default:
        this.#listeners.get(message.id)?.receive(message)
    }
  }

  #checkPulse(): void {
    const now = performance.now()
    const stuck = this.#loaded ? now - this.#heardMs > SILENCE_MS_MAX : now - this.#bornMs > LOAD_MS_MAX
    if (stuck) this.#child.kill("SIGKILL")
  }

  #end(reason: string): void {
    if (!this.alive) return
    this.alive = false
    clearInterval(this.#watch)
    this.#ready.reject(gone())
    for (const listener of this.#listeners.values()) listener.gone(gone())
    this.#listeners.clear()
    this.#ended.resolve()
    if (!this.#closing) this.#onDeath(reason)
  }
}

class LocalGeneration implements PreparedGeneration {
  readonly inputTokensMost: number
  readonly outputTokensMost: number
  readonly #process: GeneratorProcess
  readonly #id: number
  #usage: GenerationUsage = noGenerationUsage

  constructor(process: GeneratorProcess, id: number, { inputTokens, outputTokensMost }: ByKind<"prepared">) {
    this.#process = process
    this.#id = id
    this.inputTokensMost = inputTokens
    this.outputTokensMost = outputTokensMost
  }

  usage(): GenerationUsage {
    return this.#usage
  }

  discard(): void {
    this.#process.send({ kind: "drop", id: this.#id })
  }

  async *run(outputTokensMax: number, signal: AbortSignal): AsyncGenerator<GenerationEvent> {
    const inbox = new Inbox()
    const id = this.#id
    const process = this.#process
    process.listen(id, {
      receive: (message) => {
        if (message.kind === "events") {
          this.#usage = message.usage
          inbox.add(message.events)
        } else if (message.kind === "stopped") {
          this.#usage = message.usage ?? this.#usage
          inbox.stop()
        } else if (message.kind === "failed") {
          this.#usage = message.usage ?? this.#usage
          inbox.fail(faultOf(message))
        }
      },
      gone: (fault) => inbox.fail(fault),
    })
    const drop = (): void => {
      process.send({ kind: "drop", id })
      inbox.interrupt(signal.reason)
    }
    signal.addEventListener("abort", drop, { once: true })
    let ended = false
    try {
      signal.throwIfAborted()
      process.send({ kind: "run", id, outputTokensMax })
      let taken = 0
      for (;;) {
        const event = await inbox.next()
        yield event
        if (event.kind === "end") {
          ended = true
          return
        }
        if (++taken % TAKEN_GROUP === 0) process.send({ kind: "taken", id, count: TAKEN_GROUP })
      }
    } finally {
      signal.removeEventListener("abort", drop)
      if (!ended) await this.#stop(inbox)
      process.forget(id)
    }
  }

  /** Waits for what was used until the engine stopped; it does so within one decode step. */
  async #stop(inbox: Inbox): Promise<void> {
    this.#process.send({ kind: "drop", id: this.#id })
    await inbox.stopped(STOP_MS_MAX)
  }
}

/** Events on their way to the reader. Its bound is the window that the process keeps to. */
class Inbox {
  readonly #events: GenerationEvent[] = []
  readonly #stopped = Promise.withResolvers<void>()
  #failure: { reason: unknown } | null = null
  #wake: (() => void) | null = null

  add(events: readonly GenerationEvent[]): void {
    this.#events.push(...events)
    this.#wake?.()
  }

  fail(reason: unknown): void {
    this.#stopped.resolve()
    this.interrupt(reason)
  }

  interrupt(reason: unknown): void {
    this.#failure ??= { reason }
    this.#wake?.()
  }

  stop(): void {
    this.#stopped.resolve()
  }

  async next(): Promise<GenerationEvent> {
    for (;;) {
      const event = this.#events.shift()
      if (event) return event
      if (this.#failure) throw this.#failure.reason
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = null
    }
  }

  async stopped(withinMs: number): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, withinMs)
    await Promise.race([this.#stopped.promise, late.promise])
    clearTimeout(timer)
  }
}

async function untilAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener("abort", abort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener("abort", abort)
  }
}

function faultOf({ fault }: ByKind<"failed">): Fault {
  const { code, sentence, ...options } = fault
  return new Fault(code, sentence, options)
}

const gone = (): Fault => new Fault("inference_failed", "Cannot finish the request: the engine process ended")
