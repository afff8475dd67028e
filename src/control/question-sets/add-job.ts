/** Adds a job of a question set, which a gateway then runs. */
import type { Principal } from "../../contract/access.ts"
import { type Job, countOpenJobs, insertJob } from "../../store/question-sets/jobs.ts"
import type { QuestionSet } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import type { ChangeScope, ControlParts } from "../change.ts"

/** Of one organization, waiting or running. */
export const openJobsMax = 10

export const isRoomForJob = async (sql: Sql, organizationId: string): Promise<boolean> =>
  (await countOpenJobs(sql, organizationId)) < openJobsMax

export async function addJob(
  { ids }: ControlParts,
  { sql, now, touched }: ChangeScope,
  set: QuestionSet,
  given: { readonly kind: Job["kind"]; readonly input: unknown; readonly principal: Principal },
): Promise<Job> {
  const job = await insertJob(sql, {
    id: ids.next("job"),
    setId: set.id,
    organizationId: set.organizationId,
    kind: given.kind,
    input: JSON.stringify(given.input),
    principal: JSON.stringify(given.principal),
    createdAt: now,
  })
  touched({ table: "question_set_jobs", id: job.id })
  return job
}
