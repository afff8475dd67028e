/** Examples and frozen cases of question sets. Labels are JSON: the right answer by the name of the question. */
import { Fault } from "../../contract/errors.ts"
import type { ContentCipher } from "../content/cipher.ts"
import type { Page, PageRequest } from "../pages.ts"
import { type RowOf, boolean, oneOf, row, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"

/** A text as it is stored: encrypted where the installation has a key. It is found by the hash beside it. */
const StoredText = row({
  input: text,
  sealed: boolean,
})
export type StoredText = RowOf<typeof StoredText>

interface TextPlace {
  readonly id: string
  readonly setId: string
}

/** A set never changes its organization, so it stands for it. */
const placeOf = ({ id, setId }: TextPlace) => ({ organizationId: setId, seqId: id })

export function sealInput(cipher: ContentCipher, place: TextPlace, input: string): StoredText {
  if (!cipher.isAvailable) return { input, sealed: false }
  return { input: cipher.seal(placeOf(place), input).toString("base64url"), sealed: true }
}

export function openInput(cipher: ContentCipher, stored: TextPlace & StoredText): string {
  if (!stored.sealed) return stored.input
  const input = cipher.open(placeOf(stored), Buffer.from(stored.input, "base64url"))
  if (input !== null) return input
  throw new Fault(
    "conflict",
    "Cannot decrypt the examples: they were encrypted with a key that the installation no longer has",
  )
}

const PlacedText = row({ id: text, setId: text, input: text, sealed: boolean })

/** Encrypts texts that were stored before there was a key, at most so many of each table; answers how many. */
export async function sealStoredInputs(sql: Sql, cipher: ContentCipher, limit: number): Promise<number> {
  if (!cipher.isAvailable) return 0
  let count = 0
  for (const table of ["question_set_examples", "question_set_cases"]) {
    const rows = await PlacedText.all(
      sql,
      `SELECT id, set_id, input, sealed FROM ${table} WHERE NOT sealed ORDER BY id LIMIT $1`,
      [limit],
    )
    await sql.query(
      `UPDATE ${table} t SET input = e.input, sealed = true
       FROM unnest($1::text[], $2::text[]) AS e (id, input) WHERE t.id = e.id AND NOT t.sealed`,
      [rows.map(({ id }) => id), rows.map((row) => sealInput(cipher, row, row.input).input)],
    )
    count += rows.length
  }
  return count
}

const Example = row({
  ...StoredText.columns,
  id: text,
  setId: text,
  inputHash: text,
  split: oneOf("train", "held_out"),
  /** JSON. */
  labels: text,
  /** Review: a reviewer's label made it. */
  source: oneOf("added", "review"),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type Example = RowOf<typeof Example>

const Case = row({
  ...StoredText.columns,
  id: text,
  setId: text,
  inputHash: text,
  /** JSON. */
  expected: text,
  createdAt: timestamp,
})
export type Case = RowOf<typeof Case>

export async function pageExamples(
  sql: Sql,
  setId: string,
  page: PageRequest & { readonly split?: string | undefined },
): Promise<Page<Example>> {
  const text = "SELECT * FROM question_set_examples WHERE set_id = $1 AND ($2::text IS NULL OR split = $2)"
  return Example.page(sql, { text, values: [setId, page.split ?? null] }, page)
}

/** In the order of their ids, without those up to `after`. */
export function listExamples(sql: Sql, setId: string, after: string, limit: number): Promise<Example[]> {
  return Example.all(
    sql,
    "SELECT * FROM question_set_examples WHERE set_id = $1 AND id > $2 ORDER BY id LIMIT $3",
    [setId, after, limit],
  )
}

export function findExamplesByHash(sql: Sql, setId: string, hashes: readonly string[]): Promise<Example[]> {
  return Example.all(
    sql,
    "SELECT * FROM question_set_examples WHERE set_id = $1 AND input_hash = ANY($2::text[])",
    [setId, hashes],
  )
}

export function findExample(sql: Sql, setId: string, id: string): Promise<Example | null> {
  return Example.first(sql, "SELECT * FROM question_set_examples WHERE set_id = $1 AND id = $2", [setId, id])
}

export async function insertExamples(sql: Sql, examples: readonly Example[]): Promise<void> {
  if (examples.length === 0) return
  await sql.query(
    `INSERT INTO question_set_examples (id, set_id, input, input_hash, split, labels, created_at, updated_at, source, sealed)
     SELECT e.id, $1, e.input, e.input_hash, e.split, e.labels, $2, $2, $8, $9
     FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS e (id, input, input_hash, split, labels)`,
    [
      examples[0]?.setId ?? "",
      examples[0]?.createdAt ?? null,
      examples.map(({ id }) => id),
      examples.map(({ input }) => input),
      examples.map(({ inputHash }) => inputHash),
      examples.map(({ split }) => split),
      examples.map(({ labels }) => labels),
      examples[0]?.source ?? "added",
      examples[0]?.sealed ?? false,
    ],
  )
}

export function updateExample(
  sql: Sql,
  id: string,
  labels: string,
  updatedAt: Date,
): Promise<Example | null> {
  return Example.first(
    sql,
    "UPDATE question_set_examples SET labels = $2, updated_at = $3 WHERE id = $1 RETURNING *",
    [id, labels, updatedAt],
  )
}

/** Answers false when there is no such example. */
export async function deleteExample(sql: Sql, setId: string, id: string): Promise<boolean> {
  const rows = await sql.query(
    "DELETE FROM question_set_examples WHERE set_id = $1 AND id = $2 RETURNING id",
    [setId, id],
  )
  return rows.length > 0
}

export function pageCases(sql: Sql, setId: string, page: PageRequest): Promise<Page<Case>> {
  return Case.page(sql, { text: "SELECT * FROM question_set_cases WHERE set_id = $1", values: [setId] }, page)
}

export function listCases(sql: Sql, setId: string): Promise<Case[]> {
  return Case.all(sql, "SELECT * FROM question_set_cases WHERE set_id = $1 ORDER BY id", [setId])
}

/** Answers whether the text was new. */
export function putCase(sql: Sql, one: Case): Promise<boolean> {
  return boolean.one(
    sql,
    `INSERT INTO question_set_cases (id, set_id, input, input_hash, expected, created_at, sealed)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (set_id, input_hash) DO UPDATE SET expected = excluded.expected RETURNING xmax = 0`,
    [one.id, one.setId, one.input, one.inputHash, one.expected, one.createdAt, one.sealed],
  )
}

/** Answers false when there is no such case. */
export async function deleteCase(sql: Sql, setId: string, id: string): Promise<boolean> {
  const rows = await sql.query("DELETE FROM question_set_cases WHERE set_id = $1 AND id = $2 RETURNING id", [
    setId,
    id,
  ])
  return rows.length > 0
}
