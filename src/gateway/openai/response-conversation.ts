/** The Responses API over one connection: it remembers its own responses, stored or not. */
import type { z } from "zod"
import type { Principal, Standing } from "../../contract/access.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { ResponseCreateMessage, type ResponseEvent } from "../../contract/openai/responses.ts"
import { MeteredCall } from "./inference.ts"
import type { KnownItem } from "./response-shelf.ts"
import { type Memory, type ResponseParts, startTurn, warmUp } from "./responses.ts"

/** Responses that a connection remembers; older ones can only be continued from the store. */
const rememberedMax = 64

interface Talker {
  readonly principal: Principal
  readonly standing: Standing
  readonly request: RequestFacts
}

interface ConversationParts extends ResponseParts {
  /** Checks a message and refuses it in the words of the API. */
  check(schema: z.ZodType, value: unknown): unknown
}

export class ResponseConversation {
  readonly #parts: ConversationParts
  readonly #memory = new ConnectionMemory()

  constructor(parts: ConversationParts) {
    this.#parts = parts
  }

  async *answer(message: unknown, asker: Talker): AsyncGenerator<ResponseEvent> {
    const metered = new MeteredCall(this.#parts, asker, "responses_ws")
    const {
      generate,
      type: _,
      stream: _stream,
      ...request
    } = await metered.attempt(async () => this.#read(message))
    if (generate === false) {
      yield* await warmUp(this.#parts, metered, request, this.#memory)
      return
    }
    const turn = await startTurn(this.#parts, asker, metered, request, this.#memory)
    yield* turn.events()
  }

  #read(message: unknown): ResponseCreateMessage {
    const { type } = (typeof message === "object" && message !== null ? message : {}) as { type?: unknown }
    if (type !== "response.create")
      throw new Fault(
        "invalid_request",
        "Cannot use the message: its type is not response.create, the only one there is",
        { param: "type" },
      )
    // The schema's output is what `check` answers.
    return this.#parts.check(ResponseCreateMessage, message) as ResponseCreateMessage
  }
}

class ConnectionMemory implements Memory {
  readonly #items = new Map<string, readonly KnownItem[]>()

  recall(responseId: string): readonly KnownItem[] | null {
    return this.#items.get(responseId) ?? null
  }

  remember(responseId: string, items: readonly KnownItem[]): void {
    const [oldest] = this.#items.keys()
    if (this.#items.size >= rememberedMax && oldest !== undefined) this.#items.delete(oldest)
    this.#items.set(responseId, items)
  }
}
