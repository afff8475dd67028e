/** Chat completions that are kept because their requests say so, as long as stored responses are. */
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { ChatCompletion, ChatRequest } from "../../contract/openai/chat.ts"
import type { storedChatEndpoints } from "../../contract/openai/stored-chats.ts"
import { openJson, sealJson } from "../../store/content/sealed-json.ts"
import {
  deleteStoredResponse,
  findStoredResponse,
  pageStoredBodies,
  saveStoredResponse,
  storedCharactersMax,
  updateStoredBody,
} from "../../store/responses.ts"
import { listOf, organizationOf, pageOf } from "../batches/files.ts"
import type { ResponseStore, ResponseStoreDeps } from "./response-store.ts"

/** Ids begin so: those of responses do not. */
const prefix = "chatcmpl_"

export class StoredChats {
  readonly #deps: ResponseStoreDeps
  readonly #responses: Pick<ResponseStore, "stores">

  constructor(deps: ResponseStoreDeps, responses: Pick<ResponseStore, "stores">) {
    this.#deps = deps
    this.#responses = responses
  }

  /** An answer that cannot be kept, or is too much to keep, is still an answer. */
  async keep(
    organizationId: string,
    { messages, metadata }: ChatRequest,
    completion: ChatCompletion,
  ): Promise<void> {
    if (!(await this.#responses.stores(organizationId))) return
    const { database, cipher, clock, log, hasRowSpace } = this.#deps
    const { id } = completion
    try {
      const [body, input] = await sealJson(cipher, organizationId, [
        { place: place(organizationId, id, "body"), value: { ...completion, metadata: metadata ?? {} } },
        { place: place(organizationId, id, "input"), value: messages },
      ])
      if (!body || !input || body.characters + input.characters > storedCharactersMax) return
      if (!hasRowSpace(body.text.length + input.text.length)) return
      const createdAt = new Date(clock.nowMs())
      const stored = {
        id,
        organizationId,
        previousId: null,
        body: body.text,
        input: input.text,
        pieces: null,
      }
      await saveStoredResponse(database, { ...stored, createdAt }, { items: [], hasBegun: false })
    } catch (error) {
      log.error({ err: error, completion_id: id }, "a chat completion could not be stored")
    }
  }

  async read(organizationId: string, id: string): Promise<ChatCompletion> {
    // Written by `keep`.
    return (await this.#open(organizationId, id, "body")) as ChatCompletion
  }

  async messages(organizationId: string, id: string): Promise<ChatRequest["messages"]> {
    // Written by `keep`.
    return (await this.#open(organizationId, id, "input")) as ChatRequest["messages"]
  }

  async list(
    organizationId: string,
    page: { limit: number; order: "asc" | "desc"; after?: string | undefined },
  ) {
    const { database, clock, cipher } = this.#deps
    const asked = { ...page, prefix, now: new Date(clock.nowMs()) }
    const { items, hasMore } = await pageStoredBodies(database, organizationId, asked)
    const stored = items.map(({ id, body }) => ({ place: place(organizationId, id, "body"), text: body }))
    const chats = await openJson(cipher, organizationId, stored)
    // Written by `keep`; one whose key is gone is left out.
    return listOf(chats.filter((chat) => chat !== undefined) as ChatCompletion[], hasMore)
  }

  async change(
    organizationId: string,
    id: string,
    metadata: Record<string, string>,
  ): Promise<ChatCompletion> {
    const { database, cipher, hasRowSpace } = this.#deps
    const chat = { ...(await this.read(organizationId, id)), metadata }
    const [body] = await sealJson(cipher, organizationId, [
      { place: place(organizationId, id, "body"), value: chat },
    ])
    if (!body || !hasRowSpace(body.text.length))
      throw new Fault(
        "storage_full",
        "Cannot store the chat completion: the disk has no room beside the record of usage",
      )
    if (!(await updateStoredBody(database, { organizationId, id, body: body.text }))) throw missing()
    return chat
  }

  async remove(organizationId: string, id: string): Promise<void> {
    const isThere =
      id.startsWith(prefix) && (await deleteStoredResponse(this.#deps.database, organizationId, id))
    if (!isThere) throw missing()
  }

  async #open(organizationId: string, id: string, column: "body" | "input"): Promise<unknown> {
    const { database, clock, cipher } = this.#deps
    const stored = id.startsWith(prefix)
      ? await findStoredResponse(database, organizationId, id, new Date(clock.nowMs()))
      : null
    if (!stored) throw missing()
    const [value] = await openJson(cipher, organizationId, [
      { place: place(organizationId, id, column), text: stored[column] },
    ])
    if (value === undefined) throw missing()
    return value
  }
}

const place = (organizationId: string, id: string, column: "body" | "input") => ({
  organizationId,
  seqId: `${id} ${column}`,
})

const missing = (): Fault =>
  new Fault(
    "not_found",
    "Cannot find the chat completion: no such id is stored for this organization; store: true keeps one",
  )

export function storedChatHandlers(chats: StoredChats): Handlers<typeof storedChatEndpoints> {
  return {
    listChatCompletions: async ({ query, membership }) => await chats.list(organizationOf(membership), query),
    getChatCompletion: async ({ params, membership }) =>
      await chats.read(organizationOf(membership), params.completion_id),
    updateChatCompletion: async ({ params, body, membership }) =>
      await chats.change(organizationOf(membership), params.completion_id, body.metadata ?? {}),
    deleteChatCompletion: async ({ params: { completion_id: id }, membership }) => {
      await chats.remove(organizationOf(membership), id)
      return { id, object: "chat.completion.deleted", deleted: true }
    },
    listChatCompletionMessages: async ({ params, query, membership }) => {
      const messages = await chats.messages(organizationOf(membership), params.completion_id)
      const known = messages.map((message, at) => ({ ...message, id: `${params.completion_id}-${at}` }))
      return pageOf(known, query)
    },
  }
}
