/** Counts of how a set's questions were answered, by the hour; gateways add to them. */
import { column, fragment, part, row, type RowOf, run, runCounted } from "../rows.ts"
import type { Sql } from "../sql.ts"

export const confidenceBins = 10
/** The languages of texts are counted as answers to a question of this name, which no set can have. */
export const languageQuestion = ""
const binColumns = Array.from({ length: confidenceBins }, (_, bin) => `bin_${bin}`)
const countedColumns = ["rows", ...binColumns, "latency_ms", "cost_ticks"]
const addedColumns = [...countedColumns, "confidence"]

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
  /** The sum of their confidences. */
  readonly confidence: number
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
    confidence: added.confidence,
    latency_ms: Math.round(added.latencyMs),
    cost_ticks: String(added.costTicks),
  }))
  await run(sql)`INSERT INTO set_answer_counts AS t
      (set_id, version, question, hour, abstained, answer, ${part(addedColumns.join(", "))})
    SELECT g.set_id, g.version, g.question, g.hour, g.abstained, g.answer,
      ${part(addedColumns.map((column) => `g.${column}`).join(", "))}
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS g (set_id text, version int, question text,
      hour timestamptz,
      abstained boolean, answer text, confidence double precision,
      ${part(countedColumns.map((column) => `${column} bigint`).join(", "))})
    JOIN question_sets s ON s.id = g.set_id COLLATE "C"
    ORDER BY g.set_id COLLATE "C", g.hour, g.version, g.question COLLATE "C", g.abstained,
      g.answer COLLATE "C"
    ON CONFLICT (set_id, hour, version, question, abstained, answer) DO UPDATE SET
      ${part(addedColumns.map((column) => `${column} = t.${column} + excluded.${column}`).join(", "))}`
}

interface AnswerSelection {
  readonly setId: string
  readonly startMs: number
  readonly endMs: number
  /** Null: all. */
  readonly version: number | null
  /** Null: all of the set. */
  readonly question: string | null
}

const AnswerSums = row({
  question: column.text,
  abstained: column.boolean,
  answer: column.text,
  /** When the bucket began, in Unix seconds divided by its length; 0 without buckets. */
  bucket: column.integer,
  rows: column.integer,
  bins: column.integer.list(),
  confidence: column.number,
  latencyMs: column.integer,
  costTicks: column.bigint,
})
export type AnswerSums = RowOf<typeof AnswerSums>

const selected = ({ setId, startMs, endMs, version, question }: AnswerSelection) =>
  fragment`set_id = ${setId} AND hour >= ${new Date(startMs)} AND hour < ${new Date(endMs)}
    AND (${version}::int IS NULL OR version = ${version}) AND (question = ${question}
      OR ${question}::text IS NULL AND question <> ${languageQuestion})`

/** Summed by question and answer, and by buckets of so many seconds where they are given. */
export async function sumAnswers(
  sql: Sql,
  selection: AnswerSelection,
  bucketSeconds: number | null,
  limit: number,
): Promise<AnswerSums[]> {
  const bucket =
    bucketSeconds === null ? "0" : `(extract(epoch FROM hour)::bigint / ${Math.trunc(bucketSeconds)})::int`
  const bins = binColumns.map((column) => `sum(${column})`).join(", ")
  return await AnswerSums.all(sql)`SELECT question, abstained, answer, ${part(bucket)} AS bucket,
      sum(rows) AS rows,
      sum(latency_ms) AS latency_ms, sum(confidence) AS confidence, sum(cost_ticks) AS cost_ticks, ARRAY[${part(bins)}] AS bins
    FROM set_answer_counts WHERE ${selected(selection)} GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4 LIMIT ${limit}`
}

export const listAnsweringVersions = (sql: Sql, selection: AnswerSelection) =>
  column.integer.all(sql)`SELECT DISTINCT version FROM set_answer_counts WHERE ${selected(selection)}
    ORDER BY version`

/** Answers how many rows were removed. */
export const purgeAnswerCounts = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`DELETE FROM set_answer_counts
    WHERE (set_id, hour, version, question, abstained, answer) IN
    (SELECT set_id, hour, version, question, abstained, answer FROM set_answer_counts
     WHERE hour < ${before} LIMIT ${limit}) RETURNING version`
