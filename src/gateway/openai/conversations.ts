/** Answers OpenAI's Conversations API, and keeps what responses of a conversation say. */
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { ConversationObject, conversationEndpoints } from "../../contract/openai/conversations.ts"
import type { InputItem } from "../../contract/openai/responses.ts"
import { openText, sealText } from "../../store/content/cipher.ts"
import { openJson, sealJson } from "../../store/content/sealed-json.ts"
import {
  type Conversation,
  type ConversationItem,
  addConversationItems,
  deleteConversation,
  deleteConversationItem,
  findConversationItem,
  findKeptConversation,
  insertConversation,
  listConversationItems,
  pageConversationItems,
  setConversationMetadata,
} from "../../store/conversations.ts"
import { listOf, organizationOf } from "../batches/files.ts"
import { type KnownItem, type ResponseStore, type ResponseStoreDeps, toWireItem } from "./response-store.ts"

export class Conversations {
  readonly #deps: ResponseStoreDeps
  readonly #responses: ResponseStore

  constructor(deps: ResponseStoreDeps, responses: ResponseStore) {
    this.#deps = deps
    this.#responses = responses
  }

  async create(
    organizationId: string,
    { items, metadata }: { readonly items: readonly InputItem[]; readonly metadata: Record<string, string> },
  ): Promise<ConversationObject> {
    const { database, clock, ids } = this.#deps
    if (!(await this.#responses.stores(organizationId)))
      throw new Fault("conflict", "Cannot create the conversation: the organization stores no responses")
    const id = ids.next("conv")
    const now = new Date(clock.nowMs())
    const sealed = this.#seal(organizationId, id, metadata)
    const made = await insertConversation(database, {
      id,
      organizationId,
      metadata: sealed,
      createdAt: now,
      usedAt: now,
    })
    if (items.length > 0) await this.add(organizationId, id, items)
    return this.#told(made)
  }

  async read(organizationId: string, id: string): Promise<ConversationObject> {
    return this.#told(await this.#find(organizationId, id))
  }

  async change(
    organizationId: string,
    id: string,
    metadata: Record<string, string>,
  ): Promise<ConversationObject> {
    const { database } = this.#deps
    const sealed = this.#seal(organizationId, id, metadata)
    const changed = await setConversationMetadata(database, this.#named(organizationId, id), sealed)
    if (!changed) throw missing()
    return this.#told(changed)
  }

  async remove(organizationId: string, id: string): Promise<void> {
    if (!(await deleteConversation(this.#deps.database, this.#named(organizationId, id)))) throw missing()
  }

  /** Throws Fault `conflict` when it is full. */
  async add(organizationId: string, id: string, items: readonly InputItem[]): Promise<KnownItem[]> {
    const known = await this.#responses.resolve(organizationId, items)
    await this.keep(organizationId, id, known)
    return known
  }

  async keep(organizationId: string, id: string, known: readonly KnownItem[]): Promise<void> {
    const values = known.map((one) => ({ place: { organizationId, seqId: one.id }, value: one.item }))
    const sealed = (await sealJson(this.#deps.cipher, organizationId, values)).map(({ text }, at) => ({
      id: known[at]?.id ?? "",
      item: text,
    }))
    if (!this.#deps.hasRowSpace(sealed.reduce((sum, { item }) => sum + item.length, 0)))
      throw new Fault(
        "storage_full",
        "Cannot add to the conversation: the disk has no room beside the record of usage",
      )
    const named = this.#named(organizationId, id)
    const outcome = await addConversationItems(this.#deps.database, named, sealed)
    if (outcome === "gone") throw missing()
    if (outcome === "full")
      throw new Fault(
        "conflict",
        "Cannot add to the conversation: it would have more items than one may have",
      )
  }

  /** Oldest first. */
  async items(organizationId: string, id: string): Promise<KnownItem[]> {
    await this.#find(organizationId, id)
    return await this.#opened(organizationId, await listConversationItems(this.#deps.database, id))
  }

  async page(
    organizationId: string,
    id: string,
    page: Parameters<typeof pageConversationItems>[2],
  ): Promise<{ readonly items: readonly KnownItem[]; readonly hasMore: boolean }> {
    await this.#find(organizationId, id)
    const { items, hasMore } = await pageConversationItems(this.#deps.database, id, page)
    return { items: await this.#opened(organizationId, items), hasMore }
  }

  async item(organizationId: string, id: string, itemId: string): Promise<KnownItem> {
    await this.#find(organizationId, id)
    const stored = await findConversationItem(this.#deps.database, id, itemId)
    const [item] = await this.#opened(organizationId, stored ? [stored] : [])
    if (!item) throw missing()
    return item
  }

  async #opened(organizationId: string, stored: readonly ConversationItem[]): Promise<KnownItem[]> {
    const opened = await openJson(
      this.#deps.cipher,
      organizationId,
      stored.map(({ id, item }) => ({ place: { organizationId, seqId: id }, text: item })),
    )
    return opened.map((item, at) => {
      if (item === undefined) throw missing()
      // Written by `keep`.
      return { id: stored[at]?.id ?? "", item: item as InputItem }
    })
  }

  async removeItem(organizationId: string, id: string, itemId: string): Promise<ConversationObject> {
    const found = await this.#find(organizationId, id)
    if (!(await deleteConversationItem(this.#deps.database, id, itemId))) throw missing()
    return this.#told(found)
  }

  async #find(organizationId: string, id: string): Promise<Conversation> {
    const found = await findKeptConversation(this.#deps.database, this.#named(organizationId, id))
    if (!found) throw missing()
    return found
  }

  #named(organizationId: string, id: string) {
    return { organizationId, id, now: new Date(this.#deps.clock.nowMs()) }
  }

  #seal(organizationId: string, id: string, value: unknown): string {
    return sealText(this.#deps.cipher, { organizationId, seqId: id }, JSON.stringify(value))
  }

  #told({ id, organizationId, metadata, createdAt }: Conversation): ConversationObject {
    const text = openText(this.#deps.cipher, { organizationId, seqId: id }, metadata)
    if (text === null) throw missing()
    return {
      id,
      object: "conversation",
      created_at: Math.floor(createdAt.getTime() / 1000),
      // Written by `create` and `change`.
      metadata: JSON.parse(text) as Record<string, string>,
    }
  }
}

const missing = (): Fault =>
  new Fault(
    "not_found",
    "Cannot find the conversation: no such id, or no such item in it, is stored for this organization",
    {
      param: "conversation",
    },
  )

export function conversationHandlers(conversations: Conversations): Handlers<typeof conversationEndpoints> {
  return {
    createConversation: async ({ body, membership }) =>
      await conversations.create(organizationOf(membership), {
        items: body.items ?? [],
        metadata: body.metadata ?? {},
      }),
    getConversation: async ({ params, membership }) =>
      await conversations.read(organizationOf(membership), params.conversation_id),
    updateConversation: async ({ params, body, membership }) =>
      await conversations.change(organizationOf(membership), params.conversation_id, body.metadata ?? {}),
    deleteConversation: async ({ params: { conversation_id: id }, membership }) => {
      await conversations.remove(organizationOf(membership), id)
      return { id, object: "conversation.deleted", deleted: true }
    },
    addConversationItems: async ({ params, body, membership }) => {
      const organizationId = organizationOf(membership)
      const added = await conversations.add(organizationId, params.conversation_id, body.items)
      return listOf(added.map(toWireItem), false)
    },
    listConversationItems: async ({ params, query, membership }) => {
      const organizationId = organizationOf(membership)
      const { items, hasMore } = await conversations.page(organizationId, params.conversation_id, query)
      return listOf(items.map(toWireItem), hasMore)
    },
    getConversationItem: async ({ params, membership }) =>
      toWireItem(
        await conversations.item(organizationOf(membership), params.conversation_id, params.item_id),
      ),
    deleteConversationItem: async ({ params, membership }) =>
      await conversations.removeItem(organizationOf(membership), params.conversation_id, params.item_id),
  }
}
