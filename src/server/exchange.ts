/** One request for an endpoint and its answer: exactly one answer leaves, of the work or of whatever ended it first. */
import { ServerResponse } from "node:http"
import type { Clock } from "../base/clock.ts"
import type { Log } from "../base/log.ts"
import type { Principal } from "../contract/access.ts"
import {
  EventStream,
  type Endpoint,
  type RequestFacts,
  type Surface,
  sequenceHeader,
} from "../contract/endpoint.ts"
import type { Fault } from "../contract/errors.ts"
import { drain } from "./body.ts"
import type { Ending } from "./ending.ts"
import { sendEvents } from "./events.ts"
import { MessageFacts } from "./facts.ts"
import { type Arrival, type LooseHandler, type Stages, live } from "./life.ts"
import type { Message } from "./message.ts"
import { RateLimited } from "./rate-limit.ts"
import { type Reply, asFault, sendFault, sendOutput } from "./reply.ts"

export interface Refusal {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly request: RequestFacts
  readonly fault: Fault
}

export interface ExchangeParts extends Stages {
  readonly clock: Clock
  readonly log: Log
  readonly trustProxy: boolean
  /**
   * Told of an inference request that was refused before its handler saw it, although its principal is known; answers
   * the id of its sequence, where it has one.
   */
  refused?(refusal: Refusal): string | null
}

export interface Mounted {
  readonly endpoint: Endpoint
  readonly handler: LooseHandler
}

/** A message that came for an endpoint, and where its answer goes. */
interface Found {
  readonly message: Message
  readonly path: string
  readonly params: unknown
  readonly search: URLSearchParams
  readonly reply: Reply
}

export class Exchange implements Arrival {
  readonly endpoint: Endpoint
  readonly handler: LooseHandler
  readonly found: Found
  readonly facts: RequestFacts
  principal: Principal | null = null
  handled = false
  readonly #parts: ExchangeParts
  readonly #ending: Ending
  #isDecided = false

  constructor(parts: ExchangeParts, { endpoint, handler }: Mounted, found: Found, ending: Ending) {
    this.endpoint = endpoint
    this.handler = handler
    this.found = found
    this.#parts = parts
    this.#ending = ending
    this.facts = new MessageFacts(found.message, {
      id: found.reply.requestId,
      trustProxy: parts.trustProxy,
      startedMs: parts.clock.nowMs(),
      signal: ending.signal,
    })
  }

  /** `isClosing`: nothing more may be asked over the connection. */
  begin(isClosing: () => boolean): void {
    this.#ending.whenLate((reason) => this.#decide(reason))
    live(this, this.#parts).then(
      (output) => {
        if (this.#isDecided) return
        this.#isDecided = true
        // Whatever was asked before the server began to stop.
        if (isClosing()) this.found.reply.header("connection", "close")
        this.#give(output)
      },
      (error: unknown) => this.#decide(error),
    )
  }

  #give(output: unknown): void {
    try {
      if (output instanceof EventStream) return this.#stream(output)
      sendOutput(this.found.reply, this.endpoint, output)
      this.#ending.release()
    } catch (error) {
      this.#refuse(error)
    }
  }

  #stream(output: EventStream): void {
    const { reply } = this.found
    if (!(reply.raw instanceof ServerResponse)) throw new TypeError("Cannot stream by the short way")
    sendEvents(reply, reply.raw, this.endpoint, output, this.facts.signal).then(
      () => this.#ending.release(),
      (error: unknown) => this.#refuse(error),
    )
  }

  /** Whichever comes second is nobody's concern. */
  #decide(error: unknown): void {
    if (this.#isDecided) return
    this.#isDecided = true
    this.#refuse(error)
  }

  #refuse(error: unknown): void {
    const { endpoint, principal, facts } = this
    const { message, reply } = this.found
    const fault = asFault(error)
    try {
      if (principal && !this.handled && endpoint.access.permission === "inference") {
        const sequenceId = this.#parts.refused?.({ endpoint, principal, request: facts, fault })
        if (sequenceId) reply.header(sequenceHeader, sequenceId)
      }
    } catch (cause) {
      return this.#breakOff(cause)
    }
    drain(message)
      .then(() => fail(reply, endpoint.surface, fault, message, this.#parts.log))
      .then(() => this.#ending.release())
      .catch((cause: unknown) => this.#breakOff(cause))
  }

  /** The answer itself cannot be written: nothing can be said over this connection any more. */
  #breakOff(cause: unknown): void {
    this.#ending.release()
    const { raw, requestId } = this.found.reply
    this.#parts.log.error({ request_id: requestId, err: cause }, "an answer could not be sent")
    raw.destroy()
  }
}

/** Says why there is no answer. */
export function fail(reply: Reply, surface: Surface, fault: Fault, message: Message, log: Log): void {
  const { code } = fault
  if (fault.status >= 500)
    log.error({ request_id: reply.requestId, code, err: fault.cause ?? fault }, fault.message)
  else log.debug({ request_id: reply.requestId, code }, fault.message)
  if (fault instanceof RateLimited) reply.headers(fault.headers)
  // A body that was not read to its end cannot be followed by another request.
  if (!message.complete) reply.header("connection", "close")
  sendFault(reply, surface, fault)
}
