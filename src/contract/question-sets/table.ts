/** The endpoints of question sets. */
import { exampleTable } from "./examples.ts"
import { jobTable } from "./jobs.ts"
import { monitoringTable } from "./monitoring.ts"
import { reviewTable } from "./review.ts"
import { setTable } from "./sets.ts"

/** Those that `control` handles. */
export const questionSetTable = {
  ...setTable,
  ...exampleTable,
  ...jobTable,
  ...monitoringTable,
  ...reviewTable,
}
export type QuestionSetTable = typeof questionSetTable
