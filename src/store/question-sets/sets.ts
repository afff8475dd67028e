/** Question sets, their versions and labels. A set is found by its id or its name. */
import { createHash } from "node:crypto"
import { Fault } from "../../contract/errors.ts"
import { type QuestionSetContent, questionSetLimits } from "../../contract/question-sets/content.ts"
import { sealedHeadBytes } from "../content/cipher.ts"
import { column, part, row, type RowOf, run, runCounted, table } from "../rows.ts"
import { countWithinBytes, type Page, type PageRequest, toPage } from "../pages.ts"
import type { Sql } from "../sql.ts"

const QuestionSet = table("question_sets", {
  id: column.text,
  organizationId: column.text,
  name: column.text,
  description: column.text,
  /** The number of the newest version. */
  latest: column.integer,
  shadowVersion: column.integer.nullable(),
  shadowModel: column.text.nullable(),
  shadowShare: column.number,
  /** What it may cost in a day. */
  shadowCostMaxDayUsd: column.text,
  /** Of all answers, those that are reviewed at random. */
  reviewSampleRate: column.number,
  createdBy: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  /** Counts the changes, those of labels too. */
  revision: column.bigint,
})
export type QuestionSet = RowOf<typeof QuestionSet>

const ListedVersion = row({
  setId: column.text,
  number: column.integer,
  hash: column.text,
  note: column.text,
  createdBy: column.text.nullable(),
  createdAt: column.timestamp,
})
/** With its content, as JSON. */
const SetVersion = table("question_set_versions", { ...ListedVersion.columns, content: column.text })
export type SetVersion = RowOf<typeof SetVersion>

const SetLabel = row({
  setId: column.text,
  label: column.text,
  number: column.integer,
  updatedAt: column.timestamp,
})
export type SetLabel = RowOf<typeof SetLabel>

type ShadowColumn = "shadowVersion" | "shadowModel" | "shadowShare" | "shadowCostMaxDayUsd"

type NewSet = Omit<QuestionSet, "revision" | ShadowColumn | "reviewSampleRate">

export const insertSet = (sql: Sql, set: NewSet) => QuestionSet.insert(sql, { ...set })

export async function insertVersion(sql: Sql, version: SetVersion): Promise<void> {
  await SetVersion.insert(sql, { ...version })
}

export const findSet = (sql: Sql, organizationId: string, idOrName: string) =>
  QuestionSet.find(sql)`organization_id = ${organizationId} AND (id = ${idOrName}
    OR name = ${idOrName})`

/** Held until the transaction ends, so that two changes follow one another. */
export const lockSet = (sql: Sql, organizationId: string, idOrName: string) =>
  QuestionSet.find(sql)`organization_id = ${organizationId} AND (id = ${idOrName}
    OR name = ${idOrName}) FOR UPDATE`

export const countSets = (sql: Sql, organizationId: string) =>
  QuestionSet.count(sql)`organization_id = ${organizationId}`

const ListedSet = row({
  ...QuestionSet.columns,
  /** Of the content of its latest version. */
  bytes: column.integer,
  production: column.integer.nullable(),
  examples: column.integer,
})
type ListedSet = RowOf<typeof ListedSet> & { readonly content: string }

const LatestContent = row({ setId: column.text, content: column.text })

/** With the content of their latest versions, which ends a page early where it is large. */
export async function pageSets(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<ListedSet>> {
  const listed = await ListedSet.page(sql, page, "s.id")`SELECT s.*, l.number AS production,
      octet_length(v.content) AS bytes,
      (SELECT count(*)::int FROM question_set_examples e WHERE e.set_id = s.id) AS examples
    FROM question_sets s
    JOIN question_set_versions v ON v.set_id = s.id AND v.number = s.latest
    LEFT JOIN question_set_labels l ON l.set_id = s.id AND l.label = 'production'
    WHERE s.organization_id = ${organizationId}`
  const count = countWithinBytes(listed.items.map(({ bytes }) => bytes))
  const { items, nextCursor } = toPage(listed.items, count, ({ id }) => id)
  const ids = items.map(({ id }) => id)
  const contents = await LatestContent.all(sql)`SELECT v.set_id, v.content FROM question_sets s
    JOIN question_set_versions v ON v.set_id = s.id AND v.number = s.latest WHERE s.id = ANY(${ids}::text[])`
  const byId = new Map(contents.map(({ setId, content }) => [setId, content]))
  return {
    // One that was deleted meanwhile is not listed.
    items: items.flatMap((set) => {
      const content = byId.get(set.id)
      return content === undefined ? [] : [{ ...set, content }]
    }),
    nextCursor: nextCursor ?? listed.nextCursor,
  }
}

type SetChanges = Partial<
  Pick<QuestionSet, "name" | "description" | "latest" | ShadowColumn | "reviewSampleRate">
>

export const updateSet = (sql: Sql, id: string, changes: SetChanges, updatedAt: Date) =>
  QuestionSet.update(sql, { ...changes, updatedAt }, "revision = revision + 1")`id = ${id}`

export const deleteSet = (sql: Sql, id: string) => run(sql)`DELETE FROM question_sets WHERE id = ${id}`

/** With everything that belongs to them. */
export const deleteSetsOf = (sql: Sql, organizationId: string) =>
  run(sql)`DELETE FROM question_sets WHERE organization_id = ${organizationId}`

/** By number, `latest` or a label. */
export function findVersion(sql: Sql, set: QuestionSet, reference: string): Promise<SetVersion | null> {
  const number = reference === "latest" ? set.latest : /^[0-9]+$/.test(reference) ? Number(reference) : null
  if (number !== null) return SetVersion.find(sql)`set_id = ${set.id} AND number = ${number}`
  return SetVersion.first(sql)`SELECT v.* FROM question_set_versions v
    JOIN question_set_labels l USING (set_id, number) WHERE set_id = ${set.id} AND l.label = ${reference}`
}

export async function pageVersions(
  sql: Sql,
  setId: string,
  page: PageRequest,
): Promise<Page<RowOf<typeof ListedVersion>>> {
  const before = page.cursor == null ? null : Number(page.cursor.slice(1))
  const versions = await ListedVersion.all(sql)`SELECT set_id, number, hash, note, created_by, created_at
    FROM question_set_versions WHERE set_id = ${setId} AND (${before}::int IS NULL OR number < ${before})
    ORDER BY number DESC LIMIT ${page.limit + 1}`
  return toPage(versions, page.limit, ({ number }) => `v${number}`)
}

export const listLabels = (sql: Sql, setId: string) =>
  SetLabel.all(sql)`SELECT set_id, label, number, updated_at FROM question_set_labels
    WHERE set_id = ${setId} ORDER BY label`

export const putLabel = (sql: Sql, label: SetLabel & { readonly updatedBy: string | null }) =>
  run(sql)`INSERT INTO question_set_labels (set_id, label, number, updated_by, updated_at)
    VALUES (${label.setId}, ${label.label}, ${label.number}, ${label.updatedBy}, ${label.updatedAt})
    ON CONFLICT (set_id, label) DO UPDATE SET number = excluded.number, updated_by = excluded.updated_by,
      updated_at = excluded.updated_at`

/** Answers false when there is no such label. */
export const deleteLabel = async (sql: Sql, setId: string, label: string) =>
  (await runCounted(sql)`DELETE FROM question_set_labels WHERE set_id = ${setId} AND label = ${label}
    RETURNING label`) > 0

const TaughtOn = row({
  setId: column.text,
  hash: column.text,
  /** Of the model that it was taught on. */
  modelVersion: column.text,
})

/** Its body is JSON. */
const Artefact = row({
  ...TaughtOn.columns,
  question: column.text,
  body: column.text,
  createdAt: column.timestamp,
})
export type Artefact = RowOf<typeof Artefact>

export const insertArtefact = (sql: Sql, artefact: Artefact) =>
  run(sql)`INSERT INTO question_set_artefacts (set_id, hash, question, body, model_version, created_at)
    VALUES (${artefact.setId}, ${artefact.hash}, ${artefact.question}, ${artefact.body},
      ${artefact.modelVersion}, ${artefact.createdAt}) ON CONFLICT DO NOTHING`

/** Without the bodies, which are large. */
export const listTaughtOn = (sql: Sql, setIds: readonly string[], hashes: readonly string[]) =>
  TaughtOn.all(sql)`SELECT set_id, hash, model_version FROM question_set_artefacts
    WHERE set_id = ANY(${setIds}::text[]) AND hash = ANY(${hashes}::text[])`

export function listArtefacts(sql: Sql, setId: string, hashes: readonly string[]): Promise<Artefact[]> {
  if (hashes.length === 0) return Promise.resolve([])
  return Artefact.all(sql)`SELECT * FROM question_set_artefacts
    WHERE set_id = ${setId} AND hash = ANY(${hashes}::text[])`
}

const RowCounts = row({ examples: column.integer, cases: column.integer })

export const countRows = (sql: Sql, setId: string) =>
  RowCounts.one(sql)`SELECT (SELECT count(*) FROM question_set_examples
    WHERE set_id = ${setId}) AS examples,
    (SELECT count(*) FROM question_set_cases WHERE set_id = ${setId}) AS cases`

const StoredRows = row({
  rows: column.integer,
  bytes: column.integer,
})
type StoredRows = RowOf<typeof StoredRows>

/** Of the text itself, whether it is encrypted (Base64 of a head and the text) or not. */
const inputBytes = `CASE WHEN sealed THEN octet_length(input) * 3 / 4 - ${sealedHeadBytes} ELSE octet_length(input) END`

/** Examples and frozen cases of all sets of an organization. */
const measureRows = (sql: Sql, organizationId: string) =>
  StoredRows.one(sql)`SELECT count(*) AS rows, coalesce(sum(r.bytes), 0) AS bytes
    FROM question_sets s JOIN LATERAL (
      SELECT ${part(inputBytes)} + octet_length(labels)
        + coalesce(octet_length(nullif(teacher_labels, '{}')), 0) AS bytes
        FROM question_set_examples
        WHERE set_id = s.id
      UNION ALL
      SELECT ${part(inputBytes)} + octet_length(expected) FROM question_set_cases WHERE set_id = s.id
    ) r ON true WHERE s.organization_id = ${organizationId}`

/**
 * Called after rows were written, under a lock on the organization, whose transaction takes them back; or before, with what is about to be
 * written.
 */
export async function checkStorage(
  sql: Sql,
  { organizationId }: Pick<QuestionSet, "organizationId">,
  what: "examples" | "cases" | "labels" | "answers",
  more = { rows: 0, bytes: 0 },
): Promise<void> {
  const stored = await measureRows(sql, organizationId)
  const [rows, bytes] = [stored.rows + more.rows, stored.bytes + more.bytes]
  const { organizationRowsMax, organizationRowBytesMax } = questionSetLimits
  const would = `Cannot add the ${what}: the question sets of the organization would hold`
  if (rows > organizationRowsMax)
    throw new Fault(
      "conflict",
      `${would} ${rows} examples and cases; at most ${organizationRowsMax} are kept`,
    )
  if (bytes > organizationRowBytesMax)
    throw new Fault(
      "conflict",
      `${would} ${bytes} bytes of examples and cases; at most ${organizationRowBytesMax} are kept`,
    )
}

const PublishedSet = row({
  name: column.text,
  description: column.text,
  number: column.integer,
  /** JSON. */
  content: column.text,
})
export type PublishedSet = RowOf<typeof PublishedSet>

const published = `FROM question_sets s
  JOIN question_set_labels l ON l.set_id = s.id AND l.label = 'production'
  JOIN question_set_versions v ON v.set_id = s.id AND v.number = l.number`

/** Those after a name, in the order of their names. */
export const listPublishedSets = (sql: Sql, organizationId: string, after: string, limit: number) =>
  PublishedSet.all(sql)`SELECT s.name, s.description, v.number, v.content ${part(published)}
    WHERE s.organization_id = ${organizationId} AND s.name COLLATE "C" > ${after}
    ORDER BY s.name COLLATE "C" LIMIT ${limit}`

export const findPublishedSet = (sql: Sql, organizationId: string, name: string) =>
  PublishedSet.first(sql)`SELECT s.name, s.description, v.number, v.content ${part(published)}
    WHERE s.organization_id = ${organizationId} AND s.name = ${name}`

export const listPublishedNames = (sql: Sql, organizationId: string) =>
  column.text.all(sql)`SELECT s.name ${part(published)} WHERE s.organization_id = ${organizationId}`

/** The content of a version as JSON with a hash. */
interface EncodedContent {
  readonly text: string
  /** SHA-256 of the text, in hexadecimal. */
  readonly hash: string
}

export function encodeContent(content: QuestionSetContent): EncodedContent {
  const text = JSON.stringify(sorted(content))
  return { text, hash: createHash("sha256").update(text).digest("hex") }
}

// Written by encodeContent.
export const decodeContent = (text: string): QuestionSetContent => JSON.parse(text)

/** Keys in one order, so that equal contents have equal hashes. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, sorted(member)]),
  )
}
