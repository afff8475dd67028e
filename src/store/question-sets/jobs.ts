/** Jobs of question sets: gateways claim one under a lease, renew it while they work, and end it. */
import { column, fragment, part, row, type RowOf, run, runCounted, table } from "../rows.ts"
import { type PageRequest } from "../pages.ts"
import type { Sql } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const ListedJob = row({
  id: column.text,
  setId: column.text,
  organizationId: column.text,
  kind: column.oneOf("teach", "check", "compare", "next", "distil"),
  state: column.oneOf("queued", "running", "succeeded", "failed", "cancelled"),
  progress: column.number,
  /** JSON. */
  result: column.text.nullable(),
  error: column.text.nullable(),
  cancelRequested: column.boolean,
  /** Which claim holds the job: one that was given up for dead cannot end what another has taken over. */
  attempts: column.integer,
  leasedUntil: column.timestamp.nullable(),
  createdAt: column.timestamp,
  startedAt: column.timestamp.nullable(),
  finishedAt: column.timestamp.nullable(),
})
export type ListedJob = RowOf<typeof ListedJob>

/** With what it was given, which may be large; JSON, as is the principal. */
const Job = table("question_set_jobs", { ...ListedJob.columns, input: column.text, principal: column.text })
export type Job = RowOf<typeof Job>

type NewJob = Pick<Job, "id" | "setId" | "organizationId" | "kind" | "input" | "principal" | "createdAt">

const keptPerSet = 100

/** Also forgets the oldest ended jobs of the set. */
export async function insertJob(sql: Sql, job: NewJob): Promise<Job> {
  await run(sql)`DELETE FROM question_set_jobs
    WHERE set_id = ${job.setId} AND state NOT IN ('queued', 'running') AND id NOT IN
    (SELECT id FROM question_set_jobs WHERE set_id = ${job.setId}
    ORDER BY id DESC LIMIT ${keptPerSet - 1})`
  return await Job.insert(sql, { ...job, state: "queued" })
}

export const countOpenJobs = (sql: Sql, organizationId: string) =>
  Job.count(sql)`organization_id = ${organizationId} AND state IN ('queued', 'running')`

export const findJob = (sql: Sql, setId: string, id: string) =>
  Job.find(sql)`set_id = ${setId} AND id = ${id}`

export const pageJobs = (sql: Sql, setId: string, page: PageRequest) =>
  ListedJob.page(sql, page)`SELECT id, set_id, organization_id, kind, state, progress, result, error,
      cancel_requested, attempts, leased_until, created_at, started_at, finished_at
    FROM question_set_jobs WHERE set_id = ${setId}`

export const findLastCheck = (sql: Sql, setId: string) =>
  Job.find(sql)`set_id = ${setId} AND kind = 'check' ORDER BY id DESC LIMIT 1`

/** Texts that a job was given are not kept longer than it needs them. */
const inputLeft = "CASE WHEN kind IN ('next', 'distil') THEN '{}' ELSE input END"

/** One that waits ends at once; one that runs is told when its gateway looks next. */
export const cancelJob = (sql: Sql, setId: string, id: string, now: Date) =>
  Job.first(sql)`UPDATE question_set_jobs SET cancel_requested = true,
      finished_at = CASE state WHEN 'queued' THEN ${now} ELSE finished_at END,
      input = CASE state WHEN 'queued' THEN ${part(inputLeft)} ELSE input END,
      state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END
    WHERE set_id = ${setId} AND id = ${id} RETURNING *`

export interface JobSelection {
  readonly kinds: readonly Job["kind"][]
  /** Of sets with at most `smallSetExamplesMax` examples, or with more; left out: of any. */
  readonly setSize?: "small" | "large"
}

/** Teaching a set of so many examples is over in a minute or so. */
export const smallSetExamplesMax = 2_000

/** No more rows are counted than it takes to know. */
const isOfSmallSet = fragment`(SELECT count(*) FROM (SELECT FROM question_set_examples e
  WHERE e.set_id = question_set_jobs.set_id LIMIT ${smallSetExamplesMax + 1}) some_examples) <= ${smallSetExamplesMax}`

const dueOf = ({ kinds, setSize }: JobSelection, now: Date) =>
  fragment`(state = 'queued' OR (state = 'running' AND leased_until < ${now}))
    AND kind = ANY(${kinds}::text[])
    AND ${setSize === undefined ? part("true") : fragment`(${isOfSmallSet}) = ${setSize === "small"}`}`

/** Organizations with such jobs that wait, or whose gateway is gone. */
export function listJobOrganizations(sql: Sql, jobs: JobSelection, now: Date): Promise<string[]> {
  return listOrganizations(sql, fragment`question_set_jobs WHERE ${dueOf(jobs, now)}`)
}

/** The organization's oldest such job that waits, or whose gateway is gone; null when there is none. */
export const claimJob = (sql: Sql, organizationId: string, { now, until, ...jobs }: Lease & JobSelection) =>
  Job.first(sql)`UPDATE question_set_jobs
    SET state = 'running', attempts = attempts + 1, leased_until = ${until}, started_at = ${now}
    WHERE id = (SELECT id FROM question_set_jobs
    WHERE organization_id = ${organizationId} AND ${dueOf(jobs, now)}
      ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`

/** Null when the job is gone or another gateway has it. */
export const renewJob = (sql: Sql, job: Job, progress: number, leasedUntil: Date) =>
  Job.first(sql)`UPDATE question_set_jobs
    SET progress = greatest(progress, ${progress}), leased_until = ${leasedUntil}
    WHERE id = ${job.id} AND attempts = ${job.attempts} AND state = 'running' RETURNING *`

/** Whether this claim still holds the job, which no other can take until the transaction ends. */
export const lockHeldJob = async (sql: Sql, job: Job) =>
  (await runCounted(sql)`SELECT id FROM question_set_jobs
    WHERE id = ${job.id} AND attempts = ${job.attempts} AND state = 'running' FOR UPDATE`) > 0

/** For a gateway that stops: another takes it, or this one when it starts again. */
export const returnJob = (sql: Sql, job: Job) =>
  run(sql)`UPDATE question_set_jobs SET state = 'queued', attempts = attempts - 1, leased_until = NULL
    WHERE id = ${job.id} AND attempts = ${job.attempts} AND state = 'running'`

export interface JobEnd {
  readonly state: "succeeded" | "failed" | "cancelled"
  /** JSON. */
  readonly result: string | null
  readonly error: string | null
}

export const succeeded = (result: unknown): JobEnd => ({
  state: "succeeded",
  result: JSON.stringify(result),
  error: null,
})

/** Answers false when the job has ended, another gateway has it, or it is gone. */
export const endJob = async (sql: Sql, job: Job, end: JobEnd, now: Date) =>
  (await runCounted(sql)`UPDATE question_set_jobs
    SET state = ${end.state}, result = ${end.result}, error = ${end.error}, finished_at = ${now},
      leased_until = NULL,
      input = ${part(inputLeft)},
      progress = CASE ${end.state} WHEN 'succeeded' THEN 1 ELSE progress END
    WHERE id = ${job.id} AND attempts = ${job.attempts} AND state = 'running' RETURNING id`) > 0

const compared = {
  question: column.text,
  version: column.integer,
  shadowVersion: column.integer,
  shadowModel: column.text,
  verdict: column.text,
  shadowVerdict: column.text,
}

const ShadowResult = table("question_set_shadow_results", {
  setId: column.text,
  at: column.timestamp,
  ...compared,
  confidence: column.number,
  shadowConfidence: column.number,
})
export type ShadowResult = Omit<RowOf<typeof ShadowResult>, "setId" | "at">

/** Also forgets the oldest beyond `keptMax` of the set. */
export async function insertShadowResults(
  sql: Sql,
  setId: string,
  results: readonly ShadowResult[],
  { at, keptMax }: { at: Date; keptMax: number },
): Promise<void> {
  for (const result of results) await ShadowResult.insert(sql, { setId, at, ...result })
  await run(sql)`DELETE FROM question_set_shadow_results WHERE set_id = ${setId} AND id <=
    (SELECT id FROM question_set_shadow_results WHERE set_id = ${setId}
    ORDER BY id DESC OFFSET ${keptMax} LIMIT 1)`
}

type VerdictValue = string | boolean | number | null

/** As it is stored: JSON, or a word that is no JSON where it abstains. */
export const abstained = "abstain"
export const encodeVerdict = (value: VerdictValue): string =>
  value === null ? abstained : JSON.stringify(value)
export const decodeVerdict = (stored: string): VerdictValue =>
  // Written by the function above.
  stored === abstained ? null : JSON.parse(stored)

const ShadowCell = row({
  ...compared,
  answers: column.integer,
  shiftSum: column.number,
  firstAt: column.timestamp,
  lastAt: column.timestamp,
})
/** How often one answer stood beside another. */
export type ShadowCell = RowOf<typeof ShadowCell>

/** Of all results that are kept; the newest comparison first, in it the most frequent pair. */
export const listShadowCells = (sql: Sql, setId: string) =>
  ShadowCell.all(sql)`SELECT question, version, shadow_version, shadow_model, verdict, shadow_verdict,
      count(*)::int AS answers, sum(abs(confidence - shadow_confidence))::float8 AS shift_sum,
      min(at) AS first_at, max(at) AS last_at
    FROM question_set_shadow_results WHERE set_id = ${setId}
    GROUP BY question, version, shadow_version, shadow_model, verdict, shadow_verdict
    ORDER BY max(max(at)) OVER (PARTITION BY question, version, shadow_version, shadow_model) DESC,
      question, version, shadow_version, shadow_model, answers DESC, verdict, shadow_verdict`
