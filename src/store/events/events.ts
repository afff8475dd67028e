/** The gateway's side of analytics: asks the analytics process, and starts it again when it has died. */
import { type ChildProcess, fork } from "node:child_process"
import { EventEngineError } from "./engine.ts"
import type { Place, Reply, Work, WorkKind } from "./protocol.ts"

export interface Events {
  ask<Kind extends WorkKind>(kind: Kind, input: Work[Kind]["input"]): Promise<Work[Kind]["output"]>
  close(): Promise<void>
}

interface EventsSettings {
  readonly place: Place
  /** Told when the process ends although nobody asked it to. */
  onDeath?(reason: string): void
}

const asksMax = 200
const restartAfterMs = 500
const restartAfterMsMax = 30_000
const closeMaxMs = 10_000
const lastWordsMax = 2000

/** Starts nothing yet: the process begins with the first ask. */
export function openEvents(settings: EventsSettings): Events {
  return new EventsProcess(settings)
}

interface Running {
  readonly child: ChildProcess
  readonly ready: Promise<void>
}

interface Waiter {
  resolve(output: unknown): void
  reject(error: Error): void
}

class EventsProcess implements Events {
  readonly #settings: EventsSettings
  readonly #waiting = new Map<number, Waiter>()
  #running: Running | null = null
  #lastId = 0
  #deaths = 0
  #notBeforeMs = 0
  #closed = false

  constructor(settings: EventsSettings) {
    this.#settings = settings
  }

  async ask<Kind extends WorkKind>(kind: Kind, input: Work[Kind]["input"]): Promise<Work[Kind]["output"]> {
    if (this.#closed) throw new EventEngineError("Cannot ask about events: analytics is closed")
    if (this.#waiting.size >= asksMax)
      throw new EventEngineError(`Cannot ask about events: ${asksMax} questions are waiting already`)
    this.#running ??= this.#start()
    const { child, ready } = this.#running
    await ready
    const output = await this.#send(child, kind, input)
    this.#deaths = 0
    return output
  }

  async close(): Promise<void> {
    this.#closed = true
    const running = this.#running
    if (!running) return
    const ended = new Promise<void>((resolve) => running.child.once("exit", () => resolve()))
    const timer = setTimeout(() => running.child.kill("SIGKILL"), closeMaxMs)
    await running.ready.then(() => this.#send(running.child, "close", null)).catch(() => undefined)
    if (running.child.connected) running.child.disconnect()
    if (running.child.exitCode === null && running.child.signalCode === null) await ended
    clearTimeout(timer)
  }

  #start(): Running {
    const waitMs = this.#notBeforeMs - performance.now()
    if (waitMs > 0)
      throw new EventEngineError(
        "Cannot ask about events: the analytics process has just died; ask again soon",
      )
    const child = fork(new URL("./child.ts", import.meta.url), {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    })
    let lastWords = ""
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      lastWords = (lastWords + text).slice(-lastWordsMax)
    })
    child.on("message", (reply: Reply) => this.#take(reply))
    child.on("error", () => undefined) // an exit follows
    child.on("exit", (code, signal) => this.#end(child, `${signal ?? `status ${code}`} ${lastWords}`.trim()))
    const ready = this.#send(child, "open", this.#settings.place).then(
      () => undefined,
      (error: unknown) => {
        child.kill("SIGKILL")
        throw error
      },
    )
    ready.catch(() => undefined) // whoever asks waits for it and hears of it
    return { child, ready }
  }

  #send<Kind extends WorkKind>(
    child: ChildProcess,
    kind: Kind,
    input: Work[Kind]["input"],
  ): Promise<Work[Kind]["output"]> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      child.send({ id, kind, input }, (error) => {
        if (error && this.#waiting.delete(id))
          reject(
            new EventEngineError("Cannot ask about events: the analytics process is gone", { cause: error }),
          )
      })
    })
  }

  #take(reply: Reply): void {
    const waiter = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    if ("failure" in reply) waiter?.reject(new EventEngineError(reply.failure))
    else waiter?.resolve(reply.output)
  }

  #end(child: ChildProcess, reason: string): void {
    if (this.#running?.child !== child) return
    this.#running = null
    const error = new EventEngineError("Cannot ask about events: the analytics process died")
    for (const waiter of this.#waiting.values()) waiter.reject(error)
    this.#waiting.clear()
    if (this.#closed) return
    const pauseMs = Math.min(restartAfterMs * 2 ** this.#deaths++, restartAfterMsMax)
    this.#notBeforeMs = performance.now() + pauseMs
    this.#settings.onDeath?.(reason)
  }
}
