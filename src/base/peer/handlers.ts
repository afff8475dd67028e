/** The other side of a peer, wherever it runs: takes calls, runs their handlers and sends what they answer. */
import { encodeFailure, type FromPeer, type Handlers, type Service, type ToPeer } from "./peer.ts"

export interface ServeSettings {
  /** Goes back with each answered ping. */
  status?(): unknown
  /** Of a thread: buffers of an output that are handed over. Others are copied. */
  given?(output: unknown): readonly ArrayBuffer[]
}

export function createReceiver<S extends Service<S>>(
  handlers: Handlers<S>,
  settings: ServeSettings,
  send: (message: FromPeer) => void,
): (message: ToPeer) => void {
  const jobs = new Map<number, Job>()

  const answer = async (id: number, method: string, input: unknown): Promise<void> => {
    const job = new Job()
    jobs.set(id, job)
    try {
      const handler = handlerOf(handlers, method)
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

/** The types of a service pair each method with its input. */
export function handlerOf(
  handlers: object,
  method: string,
): (input: unknown, signal: AbortSignal) => unknown {
  const handler: unknown = Object.hasOwn(handlers, method) ? Reflect.get(handlers, method) : undefined
  if (typeof handler !== "function") throw new Error(`Cannot answer: there is no method ${method}`)
  return (input, signal) => handler.call(handlers, input, signal)
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
