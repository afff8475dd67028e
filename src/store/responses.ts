/** Stored responses: kept as long as their organization says, found by id, and by the items in them. */
import { Fault } from "../contract/errors.ts"
import { countWithinBytes } from "./pages.ts"
import { column, fragment, part, row, type RowOf, run, runCounted } from "./rows.ts"
import type { Database, Sql } from "./sql.ts"

/** What the contract keeps when an organization says nothing. */
export const storedDaysDefault = 30

/** Longer conversations are not put together from stored responses. */
const chainLengthMax = 1000
/** Of a conversation, and of what one request refers to, as it is stored; a request that brings more is not stored. */
export const conversationBytesMax = 16 * 1024 * 1024
/** Characters of what is stored of one request: it is stored twice, with the response and each item by its id. */
export const storedCharactersMax = conversationBytesMax / 2

const StoredResponse = row({
  id: column.text,
  organizationId: column.text,
  previousId: column.text.nullable(),
  /** JSON text. */
  body: column.text,
  /** JSON text of a list. */
  input: column.text,
  /** JSON text of a list of lengths for each output item; null where it is not known. */
  pieces: column.text.nullable(),
  createdAt: column.timestamp,
})
export type StoredResponse = RowOf<typeof StoredResponse>

/** Of a page; in so many bytes no more values fit than one request may have. */
const bodyPageBytesMax = 256 * 1024

const StoredItem = row({ id: column.text, item: column.text })
type StoredItem = RowOf<typeof StoredItem>

/** Whether a row is within the retention that its organization has now, not the one it had then. */
/** By `since` of a row that is called r. */
export const kept = (now: Date, since: "created_at" | "used_at" = "created_at") =>
  fragment`EXISTS (SELECT 1 FROM organizations o WHERE o.id = r.organization_id AND o.deleted_at IS NULL
    AND r.${part(since)} > ${now}::timestamptz
      - make_interval(days => coalesce(o.stored_responses_days, ${storedDaysDefault}::int)))`

/** Of one that was stored when it began, its end; false where it was deleted meanwhile, or its organization stores none any more. */
export async function saveStoredResponse(
  database: Database,
  response: StoredResponse,
  { items, hasBegun }: { readonly items: readonly StoredItem[]; readonly hasBegun: boolean },
): Promise<boolean> {
  const { id, organizationId, previousId, body, input, pieces, createdAt } = response
  return await database.transaction(async (sql) => {
    const saved = hasBegun
      ? await runCounted(sql)`UPDATE stored_responses SET body = ${body}, pieces = ${pieces}
          WHERE id = ${id} AND organization_id = ${organizationId} RETURNING id`
      : await runCounted(
          sql,
        )`INSERT INTO stored_responses (id, organization_id, previous_id, body, input, pieces,
            created_at)
          VALUES (${id}, ${organizationId}, ${previousId}, ${body}, ${input}, ${pieces}, ${createdAt})
          RETURNING id`
    if (saved === 0) return false
    await run(sql)`INSERT INTO stored_response_items (id, response_id, organization_id, item)
      SELECT i.id, ${id}, ${organizationId}, i.item
      FROM unnest(${items.map((one) => one.id)}::text[], ${items.map(({ item }) => item)}::text[]) AS i (id, item)
      ON CONFLICT (id) DO NOTHING`
    return true
  })
}

/** False where it is not there any more. */
export const updateStoredBody = async (
  sql: Sql,
  { organizationId, id, body }: Pick<StoredResponse, "organizationId" | "id" | "body">,
): Promise<boolean> =>
  (await runCounted(sql)`UPDATE stored_responses SET body = ${body}
    WHERE id = ${id} AND organization_id = ${organizationId} RETURNING id`) > 0

export const findStoredResponse = (sql: Sql, organizationId: string, id: string, now: Date) =>
  StoredResponse.first(sql)`SELECT r.* FROM stored_responses r
    WHERE r.organization_id = ${organizationId} AND r.id = ${id} AND ${kept(now)}`

interface StoredPage {
  readonly limit: number
  readonly order: "asc" | "desc"
  readonly after?: string | undefined
  /** Of the ids. */
  readonly prefix: string
  readonly now: Date
}

const ListedResponse = row({ id: column.text, bytes: column.integer })
const StoredBody = row({ id: column.text, body: column.text })

/** By id, which grows with time; a page of large ones ends early. */
export async function pageStoredBodies(
  sql: Sql,
  organizationId: string,
  { limit, order, after = "", prefix, now }: StoredPage,
): Promise<{ readonly items: readonly RowOf<typeof StoredBody>[]; readonly hasMore: boolean }> {
  const beyond = part(order === "asc" ? ">" : "<")
  const listed = await ListedResponse.all(
    sql,
  )`SELECT r.id, octet_length(r.body) AS bytes FROM stored_responses r
    WHERE r.organization_id = ${organizationId} AND starts_with(r.id, ${prefix}) AND ${kept(now)}
      AND (${after} = '' OR r.id ${beyond} ${after})
    ORDER BY r.id ${part(order)} LIMIT ${limit + 1}`
  const shown = countWithinBytes(
    listed.slice(0, limit).map(({ bytes }) => bytes),
    bodyPageBytesMax,
  )
  const ids = listed.slice(0, shown).map(({ id }) => id)
  const items = await StoredBody.all(sql)`SELECT id, body FROM stored_responses
    WHERE id = ANY(${ids}::text[]) ORDER BY id ${part(order)}`
  return { items, hasMore: listed.length > shown }
}

const Link = row({ id: column.text, previousId: column.text.nullable(), bytes: column.integer })

const link = fragment`r.id, r.previous_id, r.organization_id, r.created_at, octet_length(r.body) + octet_length(r.input) AS bytes`

/** A response and all before it, oldest first; null when one of them is missing or too old. */
export async function findConversation(
  sql: Sql,
  organizationId: string,
  id: string,
  now: Date,
): Promise<StoredResponse[] | null> {
  const chain = await Link.all(sql)`WITH RECURSIVE chain AS (
      SELECT ${link}, 0 AS depth FROM stored_responses r
      WHERE r.organization_id = ${organizationId} AND r.id = ${id}
      UNION ALL
      SELECT ${link}, chain.depth + 1 FROM stored_responses r JOIN chain ON r.id = chain.previous_id
      WHERE r.organization_id = ${organizationId} AND chain.depth < ${chainLengthMax}
    )
    SELECT r.id, r.previous_id, r.bytes FROM chain r WHERE ${kept(now)} ORDER BY depth DESC`
  // One that is missing is named by the one after it.
  const isWhole = chain.every(({ previousId }, at) => previousId === (chain[at - 1]?.id ?? null))
  if (chain.at(-1)?.id !== id || !isWhole) return null
  checkBytes(
    chain.map(({ bytes }) => bytes),
    "previous_response_id",
  )
  const ids = chain.map((one) => one.id)
  const found = await StoredResponse.all(sql)`SELECT * FROM stored_responses WHERE id = ANY(${ids}::text[])`
  const byId = new Map(found.map((response) => [response.id, response]))
  const responses = ids.flatMap((one) => byId.get(one) ?? [])
  return responses.length === ids.length ? responses : null
}

/** What is stored is small beside what it may be put together to. */
function checkBytes(bytes: readonly number[], param: string): void {
  const sum = bytes.reduce((total, one) => total + one, 0)
  if (sum <= conversationBytesMax) return
  throw new Fault(
    "context_length_exceeded",
    `Cannot use what is stored: the conversation would have ${sum} bytes; at most ${conversationBytesMax} are put together`,
    { param },
  )
}

const ItemSize = row({ id: column.text, bytes: column.integer })

/** Each once; together they have no more than the most bytes, each counted as often as it is named. */
export async function findStoredItems(
  sql: Sql,
  organizationId: string,
  ids: readonly string[],
  now: Date,
): Promise<StoredItem[]> {
  const named = fragment`FROM stored_response_items i JOIN stored_responses r ON r.id = i.response_id
    WHERE i.organization_id = ${organizationId} AND i.id = ANY(${ids}::text[]) AND ${kept(now)}`
  const sizes = await ItemSize.all(sql)`SELECT i.id, octet_length(i.item) AS bytes ${named}`
  const byId = new Map(sizes.map(({ id, bytes }) => [id, bytes]))
  checkBytes(
    ids.map((id) => byId.get(id) ?? 0),
    "input",
  )
  return await StoredItem.all(sql)`SELECT i.id, i.item ${named}`
}

/** Returns whether there was one. */
export const deleteStoredResponse = async (sql: Sql, organizationId: string, id: string) =>
  (await runCounted(sql)`DELETE FROM stored_responses
    WHERE organization_id = ${organizationId} AND id = ${id} RETURNING id`) > 0

/** Deletes all that an organization has stored, conversations too. */
export async function deleteStoredResponses(sql: Sql, organizationId: string): Promise<void> {
  await run(sql)`DELETE FROM conversations WHERE organization_id = ${organizationId}`
  await run(sql)`DELETE FROM stored_responses WHERE organization_id = ${organizationId}`
}

const purgedMax = 1000

/** Deletes responses past their organization's retention, some at a time; returns how many. */
export const purgeStoredResponses = (sql: Sql, now: Date) =>
  runCounted(sql)`DELETE FROM stored_responses WHERE id IN (
    SELECT r.id FROM stored_responses r WHERE NOT ${kept(now)} LIMIT ${purgedMax}) RETURNING id`

const channel = "umpire_responses"

export interface CancellationMessage {
  /** `cancel`: the gateway that writes it should stop; `cancelled`: it did. */
  readonly kind: "cancel" | "cancelled"
  readonly responseId: string
  readonly organizationId: string
}

/** Asks, or asks again. */
export const requestCancellation = (sql: Sql, responseId: string, organizationId: string) =>
  run(sql)`WITH asked AS (
      INSERT INTO response_cancellations (response_id, organization_id, requested_at)
      VALUES (${responseId}, ${organizationId}, statement_timestamp())
      ON CONFLICT (response_id, organization_id) DO NOTHING
    )
    SELECT pg_notify('${part(channel)}', ${`cancel:${responseId}:${organizationId}`})`

/** Does nothing where it was not asked for. */
export const answerCancellation = (sql: Sql, responseId: string, organizationId: string, body: string) =>
  run(sql)`WITH answered AS (
      UPDATE response_cancellations SET body = ${body}
      WHERE response_id = ${responseId} AND organization_id = ${organizationId} AND body IS NULL
      RETURNING response_id
    )
    SELECT pg_notify('${part(channel)}', ${`cancelled:${responseId}:${organizationId}`}) FROM answered`

/** The response as it was cancelled, once: its text stays no longer than that. Null as long as no gateway answers. */
export const takeCancelled = (sql: Sql, responseId: string, organizationId: string) =>
  column.text.first(sql)`DELETE FROM response_cancellations
    WHERE response_id = ${responseId} AND organization_id = ${organizationId} AND body IS NOT NULL
    RETURNING body`

/** Asks no longer: a late answer is not written. */
export const withdrawCancellation = (sql: Sql, responseId: string, organizationId: string) =>
  run(sql)`DELETE FROM response_cancellations
    WHERE response_id = ${responseId} AND organization_id = ${organizationId}`

/** Removes at most `limit` that a gateway asked for and no longer waits for, as when it was killed; returns how many. */
export const purgeCancellations = (sql: Sql, limit: number) =>
  runCounted(sql)`DELETE FROM response_cancellations WHERE (response_id, organization_id) IN
      (SELECT response_id, organization_id FROM response_cancellations
       WHERE requested_at < statement_timestamp() - interval '1 minute' LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING response_id`

export function listenToCancellations(
  database: Database,
  listener: (message: CancellationMessage) => void,
): Promise<() => Promise<void>> {
  return database.listen(channel, (payload) => {
    const [kind, responseId, organizationId] = payload.split(":")
    if ((kind === "cancel" || kind === "cancelled") && responseId && organizationId)
      listener({ kind, responseId, organizationId })
  })
}
