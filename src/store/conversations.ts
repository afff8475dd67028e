/** Conversations and their items, kept as long after their last use as their organization keeps stored responses. */
import { conversationBytesMax, kept } from "./responses.ts"
import { countWithinBytes } from "./pages.ts"
import { column, fragment, part, row, type RowOf, run, runCounted, table } from "./rows.ts"
import type { Database, Sql } from "./sql.ts"

const Conversation = table("conversations", {
  id: column.text,
  organizationId: column.text,
  /** Encrypted JSON. */
  metadata: column.text,
  createdAt: column.timestamp,
  usedAt: column.timestamp,
})
export type Conversation = RowOf<typeof Conversation>

const Item = row({ id: column.text, item: column.text })
export type ConversationItem = RowOf<typeof Item>

/** In so many bytes no more values fit than one request may have. */
const itemPageBytesMax = 256 * 1024

/** What one conversation may hold: as much as one request may bring. */
const conversationItemsMax = 2048

export const insertConversation = (sql: Sql, conversation: Conversation) =>
  Conversation.insert(sql, conversation)

interface Named {
  readonly organizationId: string
  readonly id: string
  readonly now: Date
}

const visible = ({ organizationId, id, now }: Named) =>
  fragment`r.organization_id = ${organizationId} AND r.id = ${id} AND ${kept(now, "used_at")}`

export const findKeptConversation = (sql: Sql, named: Named) =>
  Conversation.first(sql)`SELECT r.* FROM conversations r WHERE ${visible(named)}`

export const setConversationMetadata = (sql: Sql, named: Named, metadata: string) =>
  Conversation.first(sql)`UPDATE conversations r SET metadata = ${metadata}, used_at = ${named.now}
    WHERE ${visible(named)} RETURNING r.*`

export async function deleteConversation(sql: Sql, named: Named): Promise<boolean> {
  const rows = await runCounted(sql)`DELETE FROM conversations r WHERE ${visible(named)} RETURNING r.id`
  return rows > 0
}

/** Oldest first. */
export const listConversationItems = (sql: Sql, id: string) =>
  Item.all(sql)`SELECT id, item FROM conversation_items WHERE conversation_id = ${id} ORDER BY position`

export const findConversationItem = (sql: Sql, id: string, itemId: string) =>
  Item.first(sql)`SELECT id, item FROM conversation_items
    WHERE conversation_id = ${id} AND id = ${itemId} ORDER BY position LIMIT 1`

const ItemSize = row({ position: column.integer, bytes: column.integer })

interface ItemPage {
  readonly limit: number
  readonly order: "asc" | "desc"
  /** An item that is not there is before all. */
  readonly after?: string | undefined
}

/** A page of large items ends early. */
export async function pageConversationItems(
  sql: Sql,
  id: string,
  { limit, order, after = "" }: ItemPage,
): Promise<{ readonly items: readonly ConversationItem[]; readonly hasMore: boolean }> {
  const beyond = part(order === "asc" ? ">" : "<")
  const sizes = await ItemSize.all(
    sql,
  )`SELECT i.position, octet_length(i.item) AS bytes FROM conversation_items i
    WHERE i.conversation_id = ${id} AND coalesce(i.position ${beyond} (SELECT o.position FROM conversation_items o
      WHERE o.conversation_id = ${id} AND o.id = ${after} ORDER BY o.position ${part(order)} LIMIT 1), true)
    ORDER BY i.position ${part(order)} LIMIT ${limit + 1}`
  const shown = countWithinBytes(
    sizes.slice(0, limit).map(({ bytes }) => bytes),
    itemPageBytesMax,
  )
  const positions = sizes.slice(0, shown).map(({ position }) => position)
  const items = await Item.all(sql)`SELECT id, item FROM conversation_items
    WHERE conversation_id = ${id} AND position = ANY(${positions}::integer[]) ORDER BY position ${part(order)}`
  return { items, hasMore: sizes.length > shown }
}

const Room = row({ count: column.integer, last: column.integer, characters: column.integer })

/** "full" where they would be too many, or too much; "gone" where it is not there any more. Nothing is added then. */
export async function addConversationItems(
  database: Database,
  named: Named,
  items: readonly ConversationItem[],
): Promise<"added" | "full" | "gone"> {
  const { id, now } = named
  return await database.transaction(async (sql) => {
    const used = await runCounted(sql)`UPDATE conversations r SET used_at = ${now}
      WHERE ${visible(named)} RETURNING r.id`
    if (used === 0) return "gone"
    const { count, last, characters } = await Room.one(sql)`SELECT count(*) AS count,
        coalesce(max(position), 0) AS last, coalesce(sum(length(item)), 0) AS characters
      FROM conversation_items WHERE conversation_id = ${id}`
    const added = items.reduce((sum, { item }) => sum + item.length, 0)
    if (count + items.length > conversationItemsMax || characters + added > conversationBytesMax)
      return "full"
    await run(sql)`INSERT INTO conversation_items (conversation_id, position, id, item)
      SELECT ${id}, ${last} + i.place, i.id, i.item
      FROM unnest(${items.map((one) => one.id)}::text[], ${items.map(({ item }) => item)}::text[])
        WITH ORDINALITY AS i (id, item, place)`
    return "added"
  })
}

export async function deleteConversationItem(sql: Sql, id: string, itemId: string): Promise<boolean> {
  const rows = await runCounted(
    sql,
  )`DELETE FROM conversation_items WHERE conversation_id = ${id} AND id = ${itemId}
    RETURNING id`
  return rows > 0
}

const purgedMax = 1000

/** Deletes those past their organization's retention, some at a time; returns how many. */
export async function purgeConversations(sql: Sql, now: Date): Promise<number> {
  const rows = await runCounted(sql)`DELETE FROM conversations WHERE id IN (
    SELECT r.id FROM conversations r WHERE NOT ${kept(now, "used_at")} LIMIT ${purgedMax}) RETURNING id`
  return rows
}
