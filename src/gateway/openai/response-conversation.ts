/** The Responses API over one connection: it remembers its own responses, stored or not. */
import type { Principal, Standing } from "../../contract/access.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import type { ResponseEvent } from "../../contract/openai/responses.ts"
import { MeteredCall } from "./inference.ts"
import type { KnownItem } from "./response-store.ts"
import { type Memory, type ResponseParts, startTurn, warmUp } from "./responses.ts"

/** Responses that a connection remembers; older ones can only be continued from the store. */
const rememberedMax = 64

interface Talker {
  readonly principal: Principal
  readonly standing: Standing
  readonly request: RequestFacts
}

export class ResponseConversation {
  readonly #parts: ResponseParts
  readonly #memory = new ConnectionMemory()

  constructor(parts: ResponseParts) {
    this.#parts = parts
  }

  async *answer(message: Uint8Array, asker: Talker): AsyncGenerator<ResponseEvent> {
    const metered = new MeteredCall(this.#parts, asker, "responses_ws")
    const { generate, type: _, stream: _stream, ...request } = await metered.read("responses_ws", message)
    if (generate === false) {
      yield* await warmUp(this.#parts, metered, request, this.#memory)
      return
    }
    const turn = await startTurn(this.#parts, asker, metered, request, this.#memory)
    yield* turn.events()
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
