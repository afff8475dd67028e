/** Counts of how a set's questions were answered, by the hour; gateways add to them. */
import { type RowOf, bigint, boolean, integer, row, text } from "../rows.ts"
import type { Sql } from "../sql.ts"

export const confidenceBins = 10
const binColumns = Array.from({ length: confidenceBins }, (_, bin) => `bin_${bin}`)
const addedColumns = ["rows", ...binColumns, "latency_ms", "cost_ticks"]

export interface AnswerCounts {
  readonly setId: string
  readonly version: number
  readonly question: string
  readonly hourMs: number
  readonly abstained: boolean
  /** Empty where the set abstained. */
  readonly answer: string
  readonly rows: number
  readonly bins: readonly number[]
  readonly latencyMs: number
  readonly costTicks: bigint
}

/** Counts of sets that are gone are dropped. Rows are added in one order, so that gateways do not lock each other out. */
export async function addAnswerCounts(sql: Sql, counts: readonly AnswerCounts[]): Promise<void> {
  const rows = counts.map(({ setId, version, question, hourMs, abstained, answer, ...added }) => ({
    set_id: setId,
    version,
    question,
    hour: new Date(hourMs).toISOString(),
    abstained,
    answer,
    rows: added.rows,
    ...Object.fromEntries(added.bins.map((count, bin) => [`bin_${bin}`, count])),
    latency_ms: Math.round(added.latencyMs),
    cost_ticks: String(added.costTicks),
  }))
  await sql.query(
    `INSERT INTO set_answer_counts AS t
       (set_id, version, question, hour, abstained, answer, ${addedColumns.join(", ")})
     SELECT g.set_id, g.version, g.question, g.hour, g.abstained, g.answer,
       ${addedColumns.map((column) => `g.${column}`).join(", ")}
     FROM json_to_recordset($1::json) AS g (set_id text, version int, question text, hour timestamptz,
       abstained boolean, answer text, ${addedColumns.map((column) => `${column} bigint`).join(", ")})
     JOIN question_sets s ON s.id = g.set_id COLLATE "C"
     ORDER BY g.set_id COLLATE "C", g.hour, g.version, g.question COLLATE "C", g.abstained, g.answer COLLATE "C"
     ON CONFLICT (set_id, hour, version, question, abstained, answer) DO UPDATE SET
       ${addedColumns.map((column) => `${column} = t.${column} + excluded.${column}`).join(", ")}`,
    [JSON.stringify(rows)],
  )
}

export interface AnswerSelection {
  readonly setId: string
  readonly startMs: number
  readonly endMs: number
  /** Null: all. */
  readonly version: number | null
  /** Null: all. */
  readonly question: string | null
}

const AnswerSums = row({
  question: text,
  abstained: boolean,
  answer: text,
  /** When the bucket began, in Unix seconds divided by its length; 0 without buckets. */
  bucket: integer,
  rows: integer,
  bins: integer.list(),
  latencyMs: integer,
  costTicks: bigint,
})
export type AnswerSums = RowOf<typeof AnswerSums>

const selected = `set_id = $1 AND hour >= $2 AND hour < $3
  AND ($4::int IS NULL OR version = $4) AND ($5::text IS NULL OR question = $5)`
const valuesOf = ({ setId, startMs, endMs, version, question }: AnswerSelection) =>
  [setId, new Date(startMs), new Date(endMs), version, question] as const

/** Summed by question and answer, and by buckets of so many seconds where they are given. */
export async function sumAnswers(
  sql: Sql,
  selection: AnswerSelection,
  bucketSeconds: number | null,
  limit: number,
): Promise<AnswerSums[]> {
  const bucket =
    bucketSeconds === null ? "0" : `(extract(epoch FROM hour)::bigint / ${Math.trunc(bucketSeconds)})::int`
  return await AnswerSums.all(
    sql,
    `SELECT question, abstained, answer, ${bucket} AS bucket, sum(rows) AS rows, sum(latency_ms) AS latency_ms,
       sum(cost_ticks) AS cost_ticks, ARRAY[${binColumns.map((column) => `sum(${column})`).join(", ")}] AS bins
     FROM set_answer_counts WHERE ${selected}
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT $6`,
    [...valuesOf(selection), limit],
  )
}

export function listAnsweringVersions(sql: Sql, selection: AnswerSelection): Promise<number[]> {
  return integer.all(
    sql,
    `SELECT DISTINCT version FROM set_answer_counts WHERE ${selected} ORDER BY version`,
    [...valuesOf(selection)],
  )
}

/** Answers how many rows were removed. */
export async function purgeAnswerCounts(sql: Sql, before: Date, limit: number): Promise<number> {
  const rows = await sql.query(
    `DELETE FROM set_answer_counts WHERE (set_id, hour, version, question, abstained, answer) IN
       (SELECT set_id, hour, version, question, abstained, answer FROM set_answer_counts
        WHERE hour < $1 LIMIT $2) RETURNING version`,
    [before, limit],
  )
  return rows.length
}
