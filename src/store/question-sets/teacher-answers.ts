/** What larger models answered about kept requests of a set: without texts, which the requests' content has. */
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { column, row, type RowOf, run } from "../rows.ts"
import type { Sql } from "../sql.ts"

const TeacherAnswer = row({
  seqId: column.text,
  question: column.text,
  version: column.integer,
  model: column.text,
  /** JSON. */
  label: column.text,
  confidence: column.number,
  costTicks: column.bigint,
})
export type TeacherAnswer = RowOf<typeof TeacherAnswer>

/** Also forgets the oldest of the set beyond so many. */
export async function insertTeacherAnswers(
  sql: Sql,
  setId: string,
  answers: readonly TeacherAnswer[],
): Promise<void> {
  const rows = answers.map(({ seqId, costTicks, ...answer }) => ({
    ...answer,
    seq_id: seqId,
    cost_ticks: String(costTicks),
  }))
  await run(sql)`INSERT INTO question_set_teacher_answers
      (set_id, seq_id, question, version, model, label, confidence, cost_ticks)
    SELECT s.id, g.seq_id, g.question, g.version, g.model, g.label, g.confidence, g.cost_ticks
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS g (seq_id text, question text, version int, model text,
      label text, confidence float8, cost_ticks bigint)
    JOIN question_sets s ON s.id = ${setId}`
  await run(sql)`DELETE FROM question_set_teacher_answers WHERE set_id = ${setId} AND id <=
    (SELECT id FROM question_set_teacher_answers WHERE set_id = ${setId} ORDER BY id DESC OFFSET ${questionSetLimits.teacherAnswersMax} LIMIT 1)`
}

/** The oldest first. */
export const listTeacherAnswers = (
  sql: Sql,
  setId: string,
  { model, seqIds }: { readonly model: string; readonly seqIds: readonly string[] },
) =>
  TeacherAnswer.all(sql)`SELECT seq_id, question, version, model, label, confidence, cost_ticks
    FROM question_set_teacher_answers
    WHERE set_id = ${setId} AND model = ${model} AND seq_id = ANY(${seqIds}::text[]) ORDER BY id`
