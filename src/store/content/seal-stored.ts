/** Encrypts columns of text that were written before the installation had a key: secrets of webhooks, and stored responses. */
import { column, part, row, run } from "../rows.ts"
import type { Database } from "../sql.ts"
import { type ContentCipher, sealedMark, sealText } from "./cipher.ts"

interface SealedColumn {
  readonly table: string
  readonly column: string
  /** What `sealText` was given with the organization, by the id of the row. */
  readonly seqId: (id: string) => string
}

const columns: readonly SealedColumn[] = [
  { table: "webhooks", column: "secret", seqId: (id) => id },
  { table: "webhooks", column: "previous_secret", seqId: (id) => id },
  { table: "stored_responses", column: "body", seqId: (id) => `${id} body` },
  { table: "stored_responses", column: "input", seqId: (id) => `${id} input` },
  { table: "stored_responses", column: "pieces", seqId: (id) => `${id} pieces` },
  { table: "stored_response_items", column: "item", seqId: (id) => id },
]

const PlainText = row({ id: column.text, organizationId: column.text, plain: column.text })

/** Of a table at most so many rows at once; each is locked, so that a change made meanwhile is not undone. */
export async function sealStoredTexts(
  database: Database,
  cipher: ContentCipher,
  limit: number,
): Promise<void> {
  if (!cipher.isAvailable) return
  for (const column of columns)
    for (let after: string | null = ""; after !== null;)
      after = await sealNext(database, cipher, { ...column, after, limit })
}

/** Answers the last row that it encrypted; null when there is none left. */
async function sealNext(
  database: Database,
  cipher: ContentCipher,
  { table, column, seqId, after, limit }: SealedColumn & { readonly after: string; readonly limit: number },
): Promise<string | null> {
  return await database.transaction(async (sql) => {
    const value = part(column)
    const rows = await PlainText.all(sql)`SELECT id, organization_id, ${value} AS plain FROM ${part(table)}
      WHERE id > ${after} AND left(${value}, ${sealedMark.length}::int) <> ${sealedMark}
      ORDER BY id LIMIT ${limit} FOR UPDATE`
    const sealed = rows.map(({ id, organizationId, plain }) =>
      sealText(cipher, { organizationId, seqId: seqId(id) }, plain),
    )
    await run(sql)`UPDATE ${part(table)} t SET ${value} = e.sealed
      FROM unnest(${rows.map(({ id }) => id)}::text[], ${sealed}::text[]) AS e (id, sealed) WHERE t.id = e.id`
    return rows.at(-1)?.id ?? null
  })
}
