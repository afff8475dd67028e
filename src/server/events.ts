/** Sends answers that come in pieces, events or documents, no faster than the client reads them. */
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import type { DocumentStream, Endpoint, EventStream, StreamEvent } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Reply, asFault, errorBody } from "./reply.ts"

/** A client that takes nothing for this long is gone. */
const stallMsMax = 60_000

/** Waits for the first event before it answers: until then a failure is an ordinary error. */
export async function sendEvents(
  reply: Reply,
  endpoint: Endpoint,
  { stream, signal }: { readonly stream: EventStream; readonly signal: AbortSignal },
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

/** A document that breaks off in the middle is told by a connection that does. */
export async function sendDocument(
  reply: Reply,
  endpoint: Endpoint,
  { document, signal }: { readonly document: DocumentStream; readonly signal: AbortSignal },
): Promise<void> {
  const { raw } = reply
  const pieces = document.pieces[Symbol.asyncIterator]()
  const first = await pieces.next()
  reply.header("content-type", endpoint.produces ?? "application/octet-stream")
  reply.begin(endpoint.status)
  try {
    for (let next = first; !next.done; next = await pieces.next()) await write(raw, next.value, signal)
    raw.end()
  } catch {
    raw.destroy()
  } finally {
    await pieces.return?.()
  }
}

function frame({ name, value }: StreamEvent): string {
  const data = `data: ${JSON.stringify(value)}\n\n`
  return name === null ? data : `event: ${name}\n${data}`
}

function errorEvent(endpoint: Endpoint, error: unknown): StreamEvent {
  const surface = endpoint.surface === "oauth" ? "service" : endpoint.surface
  const body = errorBody(surface, asFault(error))
  if (surface === "anthropic") return { name: "error", value: { type: "error", error: body } }
  return { name: null, value: { error: body } }
}

async function write(raw: ServerResponse, piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (raw.write(piece)) return
  const stalled = AbortSignal.timeout(stallMsMax)
  try {
    await once(raw, "drain", { signal: AbortSignal.any([signal, stalled]) })
  } catch {
    signal.throwIfAborted()
    raw.destroy()
    throw new Fault("client_closed", "Cannot go on: the client takes nothing")
  }
}
