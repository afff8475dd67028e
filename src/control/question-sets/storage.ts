/** Limits what all question sets of an organization may store: rows, and the bytes of their texts and labels. */
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { type QuestionSet, measureRows } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"

/** Called after the rows were written, under a lock on the organization: the transaction takes them back. */
export async function checkStorage(
  sql: Sql,
  { organizationId }: QuestionSet,
  what: "examples" | "cases" | "labels",
): Promise<void> {
  const { rows, bytes } = await measureRows(sql, organizationId)
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
