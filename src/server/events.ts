/** Frames a stream of events as server-sent events, no faster than the client reads them. */
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import type { Endpoint, EventStream, StreamEvent } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Reply, asFault, errorBody } from "./reply.ts"

/** A client that takes nothing for this long is gone. */
const stallMsMax = 60_000

/** Waits for the first event before it answers: until then a failure is an ordinary error. */
export async function sendEvents(
  reply: Reply,
  endpoint: Endpoint,
  stream: EventStream,
  signal: AbortSignal,
): Promise<void> {
  const { raw } = reply
  const events = stream.events[Symbol.asyncIterator]()
  const first = await events.next()
  reply.header("content-type", "text/event-stream; charset=utf-8")
  reply.header("x-accel-buffering", "no")
  reply.begin(200)
  try {
    for (let next = first; !next.done; next = await events.next()) await write(raw, frame(next.value), signal)
    if (stream.ending !== null) await write(raw, `data: ${stream.ending}\n\n`, signal)
  } catch (error) {
    // The head has left: the failure is the last event.
    if (!raw.destroyed) raw.write(frame(errorEvent(endpoint, error)))
  } finally {
    await events.return?.()
    raw.end()
  }
}

function frame({ name, value }: StreamEvent): string {
  const data = `data: ${JSON.stringify(value)}\n\n`
  return name === null ? data : `event: ${name}\n${data}`
}

function errorEvent(endpoint: Endpoint, error: unknown): StreamEvent {
  const surface = endpoint.surface === "oauth" ? "service" : endpoint.surface
  return { name: null, value: { error: errorBody(surface, asFault(error)) } }
}

async function write(raw: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (raw.write(text)) return
  const stalled = AbortSignal.timeout(stallMsMax)
  try {
    await once(raw, "drain", { signal: AbortSignal.any([signal, stalled]) })
  } catch {
    signal.throwIfAborted()
    raw.destroy()
    throw new Fault("client_closed", "Cannot go on: the client takes nothing")
  }
}
