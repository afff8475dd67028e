/** The Responses API over one connection: it remembers its own responses, stored or not. */
import type { Principal, Membership } from "../../contract/access.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import type { ResponseEvent } from "../../contract/openai/responses.ts"
import { runInference } from "./inference.ts"
import type { KnownItem } from "./response-store.ts"
import { type Memory, type ResponseDeps, startTurn, warmUp } from "./responses.ts"

/** Responses that a connection remembers; older ones can only be continued from the store. */
const rememberedMax = 64
/** Of their conversations as JSON, each counted whole. */
const rememberedCharactersMax = 16 * 1024 * 1024

interface Talker {
  readonly principal: Principal
  readonly membership: Membership
  readonly request: RequestFacts
}

export class ResponseConversation {
  readonly #deps: ResponseDeps
  readonly #memory = new ConnectionMemory()

  constructor(deps: ResponseDeps) {
    this.#deps = deps
  }

  async *answer(message: Uint8Array, asker: Talker): AsyncGenerator<ResponseEvent> {
    const deps = this.#deps
    const start = {
      callSource: "responses_ws",
      wire: "responses_ws",
      asker: { ...asker, body: message },
    } as const
    yield* await runInference(deps, start, async (call, body) => {
      const { generate, type: _, stream: _stream, ...request } = body
      if (generate === false) return await warmUp(deps, call, { request, memory: this.#memory })
      const turn = await startTurn(deps, call, { request, memory: this.#memory })
      return call.through(turn.events())
    })
  }
}

interface Remembered {
  readonly items: readonly KnownItem[]
  readonly characters: number
}

export class ConnectionMemory implements Memory {
  readonly #responses = new Map<string, Remembered>()
  /** Conversations share their items: each is measured once. */
  readonly #sizes = new WeakMap<KnownItem, number>()
  #characters = 0

  recall(responseId: string): readonly KnownItem[] | null {
    return this.#responses.get(responseId)?.items ?? null
  }

  remember(responseId: string, items: readonly KnownItem[]): void {
    const characters = items.reduce((sum, item) => sum + this.#sizeOf(item), 0)
    this.#responses.set(responseId, { items, characters })
    this.#characters += characters
    for (const [id, oldest] of this.#responses) {
      if (this.#responses.size <= rememberedMax && this.#characters <= rememberedCharactersMax) return
      this.#responses.delete(id)
      this.#characters -= oldest.characters
    }
  }

  invalidate(responseId: string): void {
    const known = this.#responses.get(responseId)
    if (!known) return
    this.#responses.delete(responseId)
    this.#characters -= known.characters
  }

  #sizeOf(item: KnownItem): number {
    const known = this.#sizes.get(item)
    if (known !== undefined) return known
    const size = JSON.stringify(item).length
    this.#sizes.set(item, size)
    return size
  }
}
