/** The peer's side: runs handlers for the calls that arrive over this thread's or this process's channel. */
import { parentPort } from "node:worker_threads"
import { encodeFailure } from "./failure.ts"
import type { FromPeer, Handlers, Service, ToPeer } from "./peer.ts"

export interface ServeSettings {
  /** Goes back with each answered ping. */
  status?(): unknown
}

/** Called once by the module that a thread or a child process starts with. */
export function servePeer<S extends Service<S>>(handlers: Handlers<S>, settings: ServeSettings = {}): void {
  if (parentPort) {
    const port = parentPort
    const receive = createReceiver(handlers, settings, (message) => port.postMessage(message))
    // Only this room's Connection is at the other end.
    port.on("message", (message) => receive(message as ToPeer))
    return
  }
  const receive = createReceiver(handlers, settings, (message) => {
    // A parent that is gone reads nothing; the disconnect event ends this process.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  })
  process.on("message", (message) => receive(message as ToPeer))
  process.on("disconnect", endProcess)
  // The parent decides when this process ends; a Ctrl-C in the terminal reaches the whole group.
  process.on("SIGINT", () => undefined)
  process.on("SIGTERM", () => undefined)
}

/** Without exit handlers: those of native libraries may crash, and everything that was answered has left. */
export function endProcess(): void {
  process.kill(process.pid, "SIGKILL")
}

export type AnyHandler = (input: unknown, signal: AbortSignal) => unknown

function createReceiver<S extends Service<S>>(
  handlers: Handlers<S>,
  settings: ServeSettings,
  send: (message: FromPeer) => void,
): (message: ToPeer) => void {
  const jobs = new Map<number, Job>()

  const answer = async (id: number, method: string, input: unknown): Promise<void> => {
    const job = new Job()
    jobs.set(id, job)
    try {
      // The connection's types pair each method with its input.
      const handler = (handlers as unknown as Record<string, AnyHandler>)[method]
      if (!handler) throw new Error(`Cannot answer: there is no method ${method}`)
      send({
        kind: "output",
        id,
        output: await runHandler(handler(input, job.signal), job, (item) => send({ kind: "item", id, item })),
      })
    } catch (error) {
      send({ kind: "failure", id, failure: encodeFailure(error) })
    } finally {
      jobs.delete(id)
    }
  }

  return (message) => {
    switch (message.kind) {
      case "call":
        void answer(message.id, message.method, message.input)
        return
      case "next":
        jobs.get(message.id)?.grant(message.credit, message.value)
        return
      case "cancel":
        jobs.get(message.id)?.cancel()
        return
      case "ping":
        send({ kind: "pong", status: settings.status?.() })
        return
      default:
        message satisfies never
    }
  }
}

/** One call at work: its signal, and the credit of its reader. */
class Job {
  /** What the reader handed over after the first item. */
  value: unknown
  readonly #abort = new AbortController()
  #credit = 1
  #wake: () => void = () => undefined

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  grant(credit: number, value: unknown): void {
    this.#credit += credit
    this.value = value
    this.#wake()
  }

  cancel(): void {
    this.#abort.abort(new Error("The call was cancelled"))
    this.#wake()
  }

  /** Takes the credit for an item that was sent, and waits until there is some for the next. */
  async spend(): Promise<void> {
    this.#credit--
    if (this.#credit <= 0 && !this.signal.aborted)
      await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}

/** Awaits the output of a call, or sends the items of a stream as its reader's credit allows and answers its output. */
async function runHandler(
  result: unknown,
  job: Job,
  sendItem: (item: unknown) => void | Promise<void>,
): Promise<unknown> {
  if (!isStream(result)) return await result
  let value: unknown
  for (;;) {
    const step = await result.next(value)
    if (step.done) return step.value
    try {
      await sendItem(step.value)
      await job.spend()
      job.signal.throwIfAborted()
    } catch (error) {
      await result.return(undefined)
      throw error
    }
    value = job.value
  }
}

export function isStream(result: unknown): result is AsyncGenerator<unknown, unknown, unknown> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result
}
