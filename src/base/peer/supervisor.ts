/** Channels to child processes and threads, and a supervisor that starts a peer again when it dies. */
import { setTimeout as delay } from "node:timers/promises"
import { fork } from "node:child_process"
import { type WorkerOptions, Worker } from "node:worker_threads"
import { type ConnectionSettings, abortable, Connection } from "./connection.ts"
import {
  type CallName,
  type Channel,
  type Method,
  type Peer,
  type Service,
  type StreamName,
  type StreamOf,
  type ToPeer,
  PeerGone,
} from "./peer.ts"

/** A supervised service has a method `open`, which is called once after each start, before all others. */
type SupervisedService<S> = Service<S> & { open: Method }

interface SupervisorSettings<S extends SupervisedService<S>> extends ConnectionSettings {
  spawn(): Channel
  /** The input of `open`. A peer whose `open` fails is ended; calls that wait for it fail with the same error. */
  readonly open: S["open"]["input"]
  /** Starts again after a death without waiting for a call. */
  readonly isEager?: boolean
  /** Called for each end that was not requested. */
  onDeath?(reason: string): void
}

const startMsMaxDefault = 300_000
/** Starts that may crash in a row before waiting calls fail; until the next start, new calls fail at once. */
const crashedStartsMax = 3
const backoffMsMin = 100
/** Of one that cannot be opened: loading a model again and again would keep the machine busy. */
const backoffMsMax = 30_000
/** Of one that was open: a request that crashes it must not stall everybody else's for long. */
const openBackoffMsMax = 1_000
/** A peer that lived this long resets the backoff. */
const stableMs = 60_000

export class Supervisor<S extends SupervisedService<S>> implements Peer<S> {
  readonly #settings: SupervisorSettings<S>
  readonly #closing = new AbortController()
  /** The one that runs or starts. */
  #ready: Promise<Connection<S>> | null = null
  #connection: Connection<S> | null = null
  #opened: S["open"]["output"] | undefined
  #starts = 0
  #deaths = 0
  #notBeforeMs = 0
  #refusal: unknown = null
  #restart: NodeJS.Timeout | undefined

  constructor(settings: SupervisorSettings<S>) {
    this.#settings = settings
  }

  /** What the last successful `open` answered. */
  get opened(): S["open"]["output"] | undefined {
    return this.#opened
  }

  get pid(): number | undefined {
    return this.#connection?.pid
  }

  /** The present connection where it is open. */
  get running(): Connection<S> | null {
    return this.#ready !== null && this.#connection?.alive ? this.#connection : null
  }

  get restarts(): number {
    return Math.max(0, this.#starts - 1)
  }

  async call<Name extends CallName<S>>(
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<S[Name]["output"]> {
    return await (await this.ready(signal)).call(method, input, signal)
  }

  async stream<Name extends StreamName<S>>(
    method: Name,
    input: S[Name]["input"],
    signal?: AbortSignal,
  ): Promise<StreamOf<S[Name]>> {
    return await (await this.ready(signal)).stream(method, input)
  }

  /** The running peer; waits for one that starts. */
  async ready(signal?: AbortSignal): Promise<Connection<S>> {
    signal?.throwIfAborted()
    return await abortable(this.#start(), signal)
  }

  /** Calls in flight fail with PeerGone. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#restart)
    await this.#connection?.close()
    await this.#ready?.catch(() => undefined)
  }

  async #start(): Promise<Connection<S>> {
    if (this.#closing.signal.aborted) throw closed()
    if (this.#ready) return await this.#ready
    if (this.#refusal !== null && performance.now() < this.#notBeforeMs) throw this.#refusal
    this.#refusal = null
    const starting = this.#startUntilOpen()
    this.#ready = starting
    try {
      return await starting
    } catch (error) {
      if (this.#ready === starting) this.#ready = null
      this.#refusal = error
      throw error
    }
  }

  async #startUntilOpen(): Promise<Connection<S>> {
    for (let crashes = 1; ; crashes++) {
      const waitMs = this.#notBeforeMs - performance.now()
      if (waitMs > 0) await delay(waitMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
      if (this.#closing.signal.aborted) throw closed()
      try {
        return await this.#startOnce()
      } catch (error) {
        if (!(error instanceof PeerGone) || crashes >= crashedStartsMax) throw error
      }
    }
  }

  async #startOnce(): Promise<Connection<S>> {
    const startedMs = performance.now()
    this.#starts++
    const settings = { startMsMax: startMsMaxDefault, ...this.#settings }
    const connection = new Connection<S>(settings.spawn(), settings)
    this.#connection = connection
    try {
      // Every supervised service has this method.
      const opening = connection as unknown as Connection<{ open: S["open"] & { item?: never } }>
      this.#opened = await opening.call("open" as never, this.#settings.open)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      connection.kill(why)
      this.#countDeath(await connection.ended, startedMs, backoffMsMax)
      throw error
    }
    void connection.ended.then((reason) => {
      this.#ready = null
      this.#countDeath(reason, startedMs, openBackoffMsMax)
    })
    return connection
  }

  #countDeath(reason: string, startedMs: number, waitMsMax: number): void {
    if (this.#closing.signal.aborted) return
    if (performance.now() - startedMs > stableMs) this.#deaths = 0
    const backoffMs = Math.min(waitMsMax, backoffMsMin * 2 ** this.#deaths++)
    this.#notBeforeMs = performance.now() + backoffMs
    this.#settings.onDeath?.(reason)
    if (!this.#settings.isEager || this.#opened === undefined) return
    clearTimeout(this.#restart)
    this.#restart = setTimeout(() => void this.#start().catch(() => undefined), backoffMs)
  }
}

const closed = (): PeerGone => new PeerGone("it is closed")

interface ChildOptions {
  /** The Node to run it with, where it is not this one. */
  readonly execPath?: string | undefined
}

/** What a child wrote to stderr before it ended, for the reason of its end. */
const lastWordsMax = 2000

/** What runtimes, drivers and libraries read. All else stays here: the settings of a gateway hold its secrets. */
const passedOn =
  /^(?:PATH|HOME|USER|SHELL|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|WINDIR|COMSPEC|LOCALAPPDATA|APPDATA|USERPROFILE|LD_\w+|DYLD_\w+|NODE_\w+|MALLOC_\w+|(?:CUDA|NVIDIA|NV|HIP|HSA|ROCR|ROCM|AMD|GGML|LLAMA|OMP|OPENBLAS|MKL|KMP|GOMP|ORT|ONNXRUNTIME|VK|VULKAN|MESA|XDG|UV)_\w+)$/i

export const withoutSecrets = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => passedOn.test(name)))

/** The child's stderr is passed on to this process's, and its end is the reason where the child crashes. */
export function childChannel(entry: URL, { execPath }: ChildOptions = {}): Channel {
  const child = fork(entry, {
    serialization: "advanced",
    execArgv: [],
    env: withoutSecrets(process.env),
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    ...(execPath === undefined ? {} : { execPath }),
  })
  let lastWords = ""
  child.stderr?.on("data", (chunk: Buffer) => {
    process.stderr.write(chunk)
    lastWords = (lastWords + chunk.toString()).slice(-lastWordsMax)
  })
  return {
    pid: child.pid,
    send: (message) => {
      // A message that was taken and then not delivered is followed by the end of the child.
      child.send(message, () => undefined)
    },
    listen(onMessage, onEnd) {
      child.on("message", onMessage)
      // One that closed its channel cannot be reached any more; its exit follows.
      child.on("disconnect", () => child.kill("SIGKILL"))
      child.on("error", (error) => onEnd(`it could not be started or reached: ${error.message}`))
      child.on("exit", (code, signal) => onEnd(`${signal ?? `status ${code}`} ${lastWords}`.trim()))
    },
    kill: () => void child.kill("SIGKILL"),
  }
}

/** `takenOf` says which buffers of a message the thread takes over: they are empty here afterwards. Others are copied. */
export function threadChannel(
  entry: URL,
  options: WorkerOptions = {},
  takenOf: (message: ToPeer) => readonly ArrayBuffer[] = () => [],
): Channel {
  const worker = new Worker(entry, options)
  let lastError = "its thread ended"
  return {
    pid: undefined,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    send: (message) => worker.postMessage(message, [...takenOf(message)]),
    listen(onMessage, onEnd) {
      worker.on("message", onMessage)
      // An exit follows.
      worker.on("error", (error) => (lastError = error instanceof Error ? error.message : String(error)))
      worker.on("exit", () => onEnd(lastError))
    },
    kill: () => void worker.terminate(),
    keepAlive: (needed) => (needed ? worker.ref() : worker.unref()),
  }
}
