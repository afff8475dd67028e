/** Examples and frozen cases of question sets. Labels are JSON: the right answer by the name of the question. */
import { createHash } from "node:crypto"
import { Fault } from "../../contract/errors.ts"
import type { SetQuestion } from "../../contract/question-sets/content.ts"
import type { Label, TeacherLabel } from "../../contract/question-sets/examples.ts"
import type { ContentCipher } from "../content/cipher.ts"
import { column, part, row, type RowOf, run, runCounted } from "../rows.ts"
import { type Page, type PageRequest } from "../pages.ts"
import type { Sql } from "../sql.ts"

/** A text as it is stored: encrypted where the installation has a key. It is found by the hash beside it. */
const StoredText = row({ input: column.text, sealed: column.boolean })
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

const PlacedText = row({ id: column.text, setId: column.text, input: column.text, sealed: column.boolean })
export type PlacedText = RowOf<typeof PlacedText>

/** Encrypts texts that were stored before there was a key, at most so many of each table; answers how many. */
export async function sealStoredInputs(sql: Sql, cipher: ContentCipher, limit: number): Promise<number> {
  if (!cipher.isAvailable) return 0
  let count = 0
  for (const table of ["question_set_examples", "question_set_cases"]) {
    const rows = await PlacedText.all(sql)`SELECT id, set_id, input, sealed FROM ${part(table)}
      WHERE NOT sealed ORDER BY id LIMIT ${limit}`
    const sealed = rows.map((row) => sealInput(cipher, row, row.input).input)
    await run(sql)`UPDATE ${part(table)} t SET input = e.input, sealed = true
      FROM unnest(${rows.map(({ id }) => id)}::text[], ${sealed}::text[]) AS e (id, input)
      WHERE t.id = e.id AND NOT t.sealed`
    count += rows.length
  }
  return count
}

const Example = row({
  ...StoredText.columns,
  id: column.text,
  setId: column.text,
  inputHash: column.text,
  split: column.oneOf("train", "held_out"),
  /** JSON. */
  labels: column.text,
  /** JSON of `TeacherLabels`: another model's answers, which no person gave. */
  teacherLabels: column.text,
  /** What made it: a row of a person, a reviewer's label, or another model's answer. */
  source: column.oneOf("added", "review", "teacher"),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
})
export type Example = RowOf<typeof Example>

/** By the name of a question. */
export type Labels = Readonly<Record<string, Label>>
export type TeacherLabels = Readonly<Record<string, TeacherLabel>>

// Written by the functions that add examples and cases, and by distillation.
export const decodeLabels = (text: string): Labels => JSON.parse(text)
export const decodeTeacherLabels = (text: string): TeacherLabels => JSON.parse(text)

/** Of what a question asks: its words, options and levels, not its name or settings. The order of options is none of it. */
export function askedHash(question: SetQuestion): string {
  const { type, instructions } = question
  const answers = type === "predicate" ? [] : type === "choice" ? choicesOf(question) : levelsOf(question)
  const asked = JSON.stringify([type, instructions, answers])
  return createHash("sha256").update(asked).digest("hex").slice(0, askedHashDigits)
}

const askedHashDigits = 16

type AnswerWords = readonly [string, string]

const choicesOf = ({ choices }: SetQuestion & { type: "choice" }): AnswerWords[] =>
  choices
    .map(({ value, description }): AnswerWords => [String(value), description ?? ""])
    .toSorted(([a], [b]) => Number(a > b) - Number(a < b))

/** Labels name a level by its place. */
const levelsOf = ({ levels }: SetQuestion & { type: "score" }): AnswerWords[] =>
  levels.map(({ label, description }) => [label, description ?? ""])

const Case = row({
  ...StoredText.columns,
  id: column.text,
  setId: column.text,
  inputHash: column.text,
  /** JSON. */
  expected: column.text,
  createdAt: column.timestamp,
})
type Case = RowOf<typeof Case>

export async function pageExamples(
  sql: Sql,
  setId: string,
  page: PageRequest & { readonly split?: string | undefined },
): Promise<Page<Example>> {
  const { split = null } = page
  return Example.page(sql, page)`SELECT * FROM question_set_examples
    WHERE set_id = ${setId} AND (${split}::text IS NULL OR split = ${split})`
}

/** In the order of their ids, without those up to `after`. */
export const listExamples = (sql: Sql, setId: string, after: string, limit: number) =>
  Example.all(sql)`SELECT * FROM question_set_examples WHERE set_id = ${setId} AND id > ${after}
    ORDER BY id LIMIT ${limit}`

export const findExamplesByHash = (sql: Sql, setId: string, hashes: readonly string[]) =>
  Example.all(sql)`SELECT * FROM question_set_examples
    WHERE set_id = ${setId} AND input_hash = ANY(${hashes}::text[])`

const LabelsOfText = row({
  id: column.text,
  inputHash: column.text,
  labels: column.text,
  teacherLabels: column.text,
})

/** Without the texts, which for many rows are megabytes. */
export const findLabelsByHash = (sql: Sql, setId: string, hashes: readonly string[]) =>
  LabelsOfText.all(sql)`SELECT id, input_hash, labels, teacher_labels FROM question_set_examples
    WHERE set_id = ${setId} AND input_hash = ANY(${hashes}::text[])`

export const findExample = (sql: Sql, setId: string, id: string) =>
  Example.first(sql)`SELECT * FROM question_set_examples WHERE set_id = ${setId} AND id = ${id}`

export async function insertExamples(sql: Sql, examples: readonly Example[]): Promise<void> {
  const [first] = examples
  if (!first) return
  const { setId, createdAt, sealed } = first
  const listOf = (
    field: "id" | "input" | "inputHash" | "split" | "labels" | "teacherLabels" | "source",
  ): string[] => examples.map((one) => one[field])
  await run(sql)`INSERT INTO question_set_examples (id, set_id, input, input_hash, split, labels,
      teacher_labels, source, created_at, updated_at, sealed)
    SELECT e.id, ${setId}::text, e.input, e.input_hash, e.split, e.labels, e.teacher_labels, e.source,
      ${createdAt}::timestamptz, ${createdAt}::timestamptz, ${sealed}::boolean
    FROM unnest(${listOf("id")}::text[], ${listOf("input")}::text[], ${listOf("inputHash")}::text[],
      ${listOf("split")}::text[], ${listOf("labels")}::text[], ${listOf("teacherLabels")}::text[],
      ${listOf("source")}::text[])
      AS e (id, input, input_hash, split, labels, teacher_labels, source)`
}

/** The time of the example stays that of people's labels: it tells what a version was taught with. */
export const updateTeacherLabels = (sql: Sql, id: string, labels: TeacherLabels) =>
  run(sql)`UPDATE question_set_examples SET teacher_labels = ${JSON.stringify(labels)} WHERE id = ${id}`

interface Relabelled {
  readonly id: string
  /** JSON. */
  readonly labels: string
  readonly teacherLabels: string
  /** Null: as it was. */
  readonly updatedAt: Date | null
}

export async function relabelExamples(sql: Sql, examples: readonly Relabelled[]): Promise<void> {
  if (examples.length === 0) return
  const times = examples.map(({ updatedAt }) => updatedAt?.toISOString() ?? "")
  await run(sql)`UPDATE question_set_examples t SET labels = e.labels, teacher_labels = e.teacher_labels,
      updated_at = coalesce(nullif(e.updated_at, '')::timestamptz, t.updated_at)
    FROM unnest(${examples.map(({ id }) => id)}::text[], ${examples.map(({ labels }) => labels)}::text[],
      ${examples.map(({ teacherLabels }) => teacherLabels)}::text[], ${times}::text[])
      AS e (id, labels, teacher_labels, updated_at)
    WHERE t.id = e.id`
}

/** The text is that of a kept request, and goes with it. */
export const tieExample = (sql: Sql, id: string, seqId: string) =>
  run(sql)`UPDATE question_set_examples SET seq_id = ${seqId} WHERE id = ${id}`

export const updateExample = (sql: Sql, id: string, labels: string, updatedAt: Date) =>
  Example.first(sql)`UPDATE question_set_examples SET labels = ${labels}, updated_at = ${updatedAt}
    WHERE id = ${id} RETURNING *`

/** Answers false when there is no such example. */
export const deleteExample = async (sql: Sql, setId: string, id: string) =>
  (await runCounted(sql)`DELETE FROM question_set_examples WHERE set_id = ${setId} AND id = ${id}
    RETURNING id`) > 0

export const pageCases = (sql: Sql, setId: string, page: PageRequest) =>
  Case.page(sql, page)`SELECT * FROM question_set_cases WHERE set_id = ${setId}`

export const listCases = (sql: Sql, setId: string) =>
  Case.all(sql)`SELECT * FROM question_set_cases WHERE set_id = ${setId} ORDER BY id`

/** Of these, those whose text is a case. */
export const findCaseHashes = (sql: Sql, setId: string, hashes: readonly string[]) =>
  column.text.all(sql)`SELECT input_hash FROM question_set_cases
    WHERE set_id = ${setId} AND input_hash = ANY(${hashes}::text[])`

/** Each with another text. Answers how many texts were new. */
export async function putCases(sql: Sql, cases: readonly Case[]): Promise<number> {
  const [first] = cases
  if (!first) return 0
  const { setId, createdAt, sealed } = first
  const listOf = (field: "id" | "input" | "inputHash" | "expected"): string[] =>
    cases.map((one) => one[field])
  const put = await column.boolean.all(
    sql,
  )`INSERT INTO question_set_cases (id, set_id, input, input_hash, expected,
      created_at, sealed)
    SELECT e.id, ${setId}::text, e.input, e.input_hash, e.expected, ${createdAt}::timestamptz,
      ${sealed}::boolean
    FROM unnest(${listOf("id")}::text[], ${listOf("input")}::text[], ${listOf("inputHash")}::text[],
      ${listOf("expected")}::text[]) AS e (id, input, input_hash, expected)
    ON CONFLICT (set_id, input_hash) DO UPDATE SET expected = excluded.expected RETURNING xmax = 0`
  return put.filter(Boolean).length
}

/** Answers false when there is no such case. */
export const deleteCase = async (sql: Sql, setId: string, id: string) =>
  (await runCounted(sql)`DELETE FROM question_set_cases WHERE set_id = ${setId} AND id = ${id}
    RETURNING id`) > 0
