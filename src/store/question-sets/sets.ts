/** Question sets, their versions and labels. A set is found by its id or its name. */
import { sealedHeadBytes } from "../content/cipher.ts"
import { type Page, type PageRequest, toPage } from "../pages.ts"
import { type RowOf, bigint, integer, number, row, table, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"

const QuestionSet = table("question_sets", {
  id: text,
  organizationId: text,
  name: text,
  description: text,
  /** The number of the newest version. */
  latest: integer,
  shadowVersion: integer.nullable(),
  shadowModel: text.nullable(),
  shadowShare: number,
  /** Of all answers, those that are reviewed at random. */
  reviewSampleRate: number,
  createdBy: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  /** Counts the changes, those of labels too. */
  revision: bigint,
})
export type QuestionSet = RowOf<typeof QuestionSet>

const ListedVersion = row({
  setId: text,
  number: integer,
  hash: text,
  note: text,
  createdBy: text.nullable(),
  createdAt: timestamp,
})
/** With its content, as JSON. */
const SetVersion = table("question_set_versions", { ...ListedVersion.columns, content: text })
export type SetVersion = RowOf<typeof SetVersion>

const SetLabel = row({
  setId: text,
  label: text,
  number: integer,
  updatedAt: timestamp,
})
export type SetLabel = RowOf<typeof SetLabel>

type NewSet = Omit<
  QuestionSet,
  "revision" | "shadowVersion" | "shadowModel" | "shadowShare" | "reviewSampleRate"
>

export function insertSet(sql: Sql, set: NewSet): Promise<QuestionSet> {
  return QuestionSet.insert(sql, { ...set })
}

export async function insertVersion(sql: Sql, version: SetVersion): Promise<void> {
  await SetVersion.insert(sql, { ...version })
}

export function findSet(sql: Sql, organizationId: string, idOrName: string): Promise<QuestionSet | null> {
  return QuestionSet.find(sql, "organization_id = $1 AND (id = $2 OR name = $2)", [organizationId, idOrName])
}

/** Held until the transaction ends, so that two changes follow one another. */
export function lockSet(sql: Sql, organizationId: string, idOrName: string): Promise<QuestionSet | null> {
  return QuestionSet.find(sql, "organization_id = $1 AND (id = $2 OR name = $2) FOR UPDATE", [
    organizationId,
    idOrName,
  ])
}

export function countSets(sql: Sql, organizationId: string): Promise<number> {
  return QuestionSet.count(sql, "organization_id = $1", [organizationId])
}

/** With the content of its latest version. */
const ListedSet = row({
  ...QuestionSet.columns,
  content: text,
  production: integer.nullable(),
  examples: integer,
})
type ListedSet = RowOf<typeof ListedSet>

export async function pageSets(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<ListedSet>> {
  const text = `SELECT s.*, v.content, l.number AS production,
       (SELECT count(*)::int FROM question_set_examples e WHERE e.set_id = s.id) AS examples
     FROM question_sets s
     JOIN question_set_versions v ON v.set_id = s.id AND v.number = s.latest
     LEFT JOIN question_set_labels l ON l.set_id = s.id AND l.label = 'production'
     WHERE s.organization_id = $1`
  return ListedSet.page(sql, { text, values: [organizationId], idColumn: "s.id" }, page)
}

type SetChanges = Partial<
  Pick<
    QuestionSet,
    "name" | "description" | "latest" | "shadowVersion" | "shadowModel" | "shadowShare" | "reviewSampleRate"
  >
>

export function updateSet(
  sql: Sql,
  id: string,
  changes: SetChanges,
  updatedAt: Date,
): Promise<QuestionSet | null> {
  return QuestionSet.update(sql, {
    where: "id = $1",
    whereValues: [id],
    changes: { ...changes, updatedAt },
    also: "revision = revision + 1",
  })
}

export async function deleteSet(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM question_sets WHERE id = $1", [id])
}

/** With everything that belongs to them. */
export async function deleteSetsOf(sql: Sql, organizationId: string): Promise<void> {
  await sql.query("DELETE FROM question_sets WHERE organization_id = $1", [organizationId])
}

/** By number, `latest` or a label. */
export function findVersion(sql: Sql, set: QuestionSet, reference: string): Promise<SetVersion | null> {
  const number = reference === "latest" ? set.latest : /^[0-9]+$/.test(reference) ? Number(reference) : null
  return SetVersion.first(
    sql,
    number === null
      ? `SELECT v.* FROM question_set_versions v JOIN question_set_labels l USING (set_id, number)
         WHERE set_id = $1 AND l.label = $2`
      : "SELECT * FROM question_set_versions WHERE set_id = $1 AND number = $2",
    [set.id, number ?? reference],
  )
}

export async function pageVersions(
  sql: Sql,
  setId: string,
  page: PageRequest,
): Promise<Page<RowOf<typeof ListedVersion>>> {
  const versions = await ListedVersion.all(
    sql,
    `SELECT set_id, number, hash, note, created_by, created_at FROM question_set_versions
     WHERE set_id = $1 AND ($2::int IS NULL OR number < $2) ORDER BY number DESC LIMIT $3`,
    [setId, page.cursor == null ? null : Number(page.cursor.slice(1)), page.limit + 1],
  )
  return toPage(versions, page.limit, ({ number }) => `v${number}`)
}

export function listLabels(sql: Sql, setId: string): Promise<SetLabel[]> {
  return SetLabel.all(
    sql,
    "SELECT set_id, label, number, updated_at FROM question_set_labels WHERE set_id = $1 ORDER BY label",
    [setId],
  )
}

export async function putLabel(
  sql: Sql,
  label: SetLabel & { readonly updatedBy: string | null },
): Promise<void> {
  await sql.query(
    `INSERT INTO question_set_labels (set_id, label, number, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (set_id, label) DO UPDATE SET number = excluded.number, updated_by = excluded.updated_by,
       updated_at = excluded.updated_at`,
    [label.setId, label.label, label.number, label.updatedBy, label.updatedAt],
  )
}

/** Answers false when there is no such label. */
export async function deleteLabel(sql: Sql, setId: string, label: string): Promise<boolean> {
  const rows = await sql.query(
    "DELETE FROM question_set_labels WHERE set_id = $1 AND label = $2 RETURNING label",
    [setId, label],
  )
  return rows.length > 0
}

const TaughtOn = row({
  setId: text,
  hash: text,
  /** Of the model that it was taught on. */
  modelVersion: text,
})

/** Its body is JSON. */
const Artefact = row({ ...TaughtOn.columns, question: text, body: text, createdAt: timestamp })
export type Artefact = RowOf<typeof Artefact>

export async function insertArtefact(sql: Sql, artefact: Artefact): Promise<void> {
  await sql.query(
    `INSERT INTO question_set_artefacts (set_id, hash, question, body, model_version, created_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    [
      artefact.setId,
      artefact.hash,
      artefact.question,
      artefact.body,
      artefact.modelVersion,
      artefact.createdAt,
    ],
  )
}

/** Without the bodies, which are large. */
export function listTaughtOn(
  sql: Sql,
  setIds: readonly string[],
  hashes: readonly string[],
): Promise<RowOf<typeof TaughtOn>[]> {
  return TaughtOn.all(
    sql,
    `SELECT set_id, hash, model_version FROM question_set_artefacts
     WHERE set_id = ANY($1::text[]) AND hash = ANY($2::text[])`,
    [setIds, hashes],
  )
}

export function listArtefacts(sql: Sql, setId: string, hashes: readonly string[]): Promise<Artefact[]> {
  if (hashes.length === 0) return Promise.resolve([])
  return Artefact.all(
    sql,
    "SELECT * FROM question_set_artefacts WHERE set_id = $1 AND hash = ANY($2::text[])",
    [setId, hashes],
  )
}

const RowCounts = row({ examples: integer, cases: integer })

export function countRows(sql: Sql, setId: string): Promise<RowOf<typeof RowCounts>> {
  return RowCounts.one(
    sql,
    `SELECT (SELECT count(*) FROM question_set_examples WHERE set_id = $1) AS examples,
       (SELECT count(*) FROM question_set_cases WHERE set_id = $1) AS cases`,
    [setId],
  )
}

const StoredRows = row({
  rows: integer,
  bytes: integer,
})
export type StoredRows = RowOf<typeof StoredRows>

/** Of the text itself, whether it is encrypted (Base64 of a head and the text) or not. */
const inputBytes = `CASE WHEN sealed THEN octet_length(input) * 3 / 4 - ${sealedHeadBytes} ELSE octet_length(input) END`

/** Examples and frozen cases of all sets of an organization. */
export function measureRows(sql: Sql, organizationId: string): Promise<StoredRows> {
  return StoredRows.one(
    sql,
    `SELECT count(*) AS rows, coalesce(sum(r.bytes), 0) AS bytes
     FROM question_sets s JOIN LATERAL (
       SELECT ${inputBytes} + octet_length(labels) AS bytes FROM question_set_examples
         WHERE set_id = s.id
       UNION ALL
       SELECT ${inputBytes} + octet_length(expected) FROM question_set_cases WHERE set_id = s.id
     ) r ON true WHERE s.organization_id = $1`,
    [organizationId],
  )
}

const PublishedSet = row({
  name: text,
  description: text,
  number: integer,
  /** JSON. */
  content: text,
})
export type PublishedSet = RowOf<typeof PublishedSet>

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
  return PublishedSet.all(
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
  return PublishedSet.first(
    sql,
    `SELECT s.name, s.description, v.number, v.content ${published} WHERE s.organization_id = $1 AND s.name = $2`,
    [organizationId, name],
  )
}

export function listPublishedNames(sql: Sql, organizationId: string): Promise<string[]> {
  return text.all(sql, `SELECT s.name ${published} WHERE s.organization_id = $1`, [organizationId])
}
