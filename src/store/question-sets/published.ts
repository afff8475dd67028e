/** Question sets with a published version, by name. */
import { queryRecord, queryRecords } from "../rows.ts"
import type { Sql } from "../sql.ts"

export interface PublishedSet {
  readonly name: string
  readonly description: string
  readonly number: number
  /** JSON. */
  readonly content: string
}

const published = `FROM question_sets s
  JOIN question_set_labels l ON l.set_id = s.id AND l.label = 'production'
  JOIN question_set_versions v ON v.set_id = s.id AND v.number = l.number`

/** Those after a name, in the order of their names. */
export function listPublishedSets(
  sql: Sql,
  organizationId: string,
  after: string,
  limit: number,
): Promise<PublishedSet[]> {
  return queryRecords<PublishedSet>(
    sql,
    `SELECT s.name, s.description, v.number, v.content ${published}
     WHERE s.organization_id = $1 AND s.name COLLATE "C" > $2 ORDER BY s.name COLLATE "C" LIMIT $3`,
    [organizationId, after, limit],
  )
}

export function findPublishedSet(
  sql: Sql,
  organizationId: string,
  name: string,
): Promise<PublishedSet | null> {
  return queryRecord<PublishedSet>(
    sql,
    `SELECT s.name, s.description, v.number, v.content ${published} WHERE s.organization_id = $1 AND s.name = $2`,
    [organizationId, name],
  )
}

export async function listPublishedNames(sql: Sql, organizationId: string): Promise<string[]> {
  const rows = await sql.query<{ name: string }>(`SELECT s.name ${published} WHERE s.organization_id = $1`, [
    organizationId,
  ])
  return rows.map(({ name }) => name)
}
