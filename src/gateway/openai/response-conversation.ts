/** The Responses API over one connection: it remembers its own responses, stored or not. */
import type { Principal, Membership } from "../../contract/access.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import type { ResponseEvent } from "../../contract/openai/responses.ts"
import { conversationBytesMax } from "../../store/responses.ts"
import { runInference } from "./inference.ts"
import type { KnownItem } from "./response-store.ts"
import { type Memory, type ResponseDeps, startTurn, warmUp } from "./responses.ts"

/** Responses that a connection remembers; older ones can only be continued from the store. */
const rememberedMax = 64

interface Talker {
  readonly principal: Principal
  readonly membership: Membership
  readonly request: RequestFacts
}

export class ResponseConversation {
  readonly #deps: ResponseDeps
  readonly #memory: ConnectionMemory

  constructor(deps: ResponseDeps, hasRoom: (characters: number) => boolean) {
    this.#deps = deps
    this.#memory = new ConnectionMemory(hasRoom)
  }

  async *answer(message: Uint8Array, asker: Talker): AsyncGenerator<ResponseEvent> {
    const deps = this.#deps
    const start = {
      callSource: "responses_ws",
      wire: "responses_ws",
      asker: { ...asker, body: message },
    } as const
    yield* await runInference(deps, start, async (call, body) => {
      const { generate, type: _, stream: _stream, background: _background, ...request } = body
      if (generate === false) return await warmUp(deps, call, { request, memory: this.#memory })
      const turn = await startTurn(deps, call, { request, memory: this.#memory })
      return call.through(turn.events())
    })
  }
}

interface KnownSize {
  readonly characters: number
  /** Conversations that hold the item. */
  holders: number
}

export class ConnectionMemory implements Memory {
  readonly #responses = new Map<string, readonly KnownItem[]>()
  /** Conversations share their items: each counts once. */
  readonly #sizes = new Map<KnownItem, KnownSize>()
  readonly #hasRoom: (characters: number) => boolean
  #characters = 0

  constructor(hasRoom: (characters: number) => boolean) {
    this.#hasRoom = hasRoom
  }

  recall(responseId: string): readonly KnownItem[] | null {
    return this.#responses.get(responseId) ?? null
  }

  /** The oldest are forgotten where there is no room. */
  remember(responseId: string, items: readonly KnownItem[]): void {
    this.#responses.set(responseId, items)
    for (const item of items) {
      const known = this.#sizes.get(item)
      if (known) {
        known.holders++
        continue
      }
      const characters = JSON.stringify(item).length
      this.#sizes.set(item, { characters, holders: 1 })
      this.#characters += characters
    }
    for (const id of this.#responses.keys()) {
      const fits = this.#responses.size <= rememberedMax && this.#characters <= conversationBytesMax
      if (fits && this.#hasRoom(this.#characters)) return
      this.#remove(id)
    }
    this.#hasRoom(this.#characters)
  }

  invalidate(responseId: string): void {
    this.#remove(responseId)
    this.#hasRoom(this.#characters)
  }

  #remove(responseId: string): void {
    for (const item of this.#responses.get(responseId) ?? []) {
      const known = this.#sizes.get(item)
      if (!known || --known.holders > 0) continue
      this.#sizes.delete(item)
      this.#characters -= known.characters
    }
    this.#responses.delete(responseId)
  }
}
