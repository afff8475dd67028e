/** Jobs of question sets: gateways claim one under a lease, renew it while they work, and end it. */
import type { Page, PageRequest } from "../pages.ts"
import { type RowOf, boolean, integer, number, oneOf, row, table, text, timestamp } from "../rows.ts"
import type { Sql } from "../sql.ts"
import { type Lease, listOrganizations } from "../work-queue.ts"

const Job = table("question_set_jobs", {
  id: text,
  setId: text,
  organizationId: text,
  kind: oneOf("teach", "check", "compare", "next"),
  state: oneOf("queued", "running", "succeeded", "failed", "cancelled"),
  /** JSON, as are the principal and the result. */
  input: text,
  principal: text,
  progress: number,
  result: text.nullable(),
  error: text.nullable(),
  cancelRequested: boolean,
  /** Which claim holds the job: one that was given up for dead cannot end what another has taken over. */
  attempts: integer,
  leasedUntil: timestamp.nullable(),
  createdAt: timestamp,
  startedAt: timestamp.nullable(),
  finishedAt: timestamp.nullable(),
})
export type Job = RowOf<typeof Job>

type NewJob = Pick<Job, "id" | "setId" | "organizationId" | "kind" | "input" | "principal" | "createdAt">

const keptPerSet = 100

/** Also forgets the oldest ended jobs of the set. */
export async function insertJob(sql: Sql, job: NewJob): Promise<Job> {
  await sql.query(
    `DELETE FROM question_set_jobs WHERE set_id = $1 AND state NOT IN ('queued', 'running') AND id NOT IN
       (SELECT id FROM question_set_jobs WHERE set_id = $1 ORDER BY id DESC LIMIT ${keptPerSet - 1})`,
    [job.setId],
  )
  return await Job.insert(sql, { ...job, state: "queued" })
}

export async function countOpenJobs(sql: Sql, organizationId: string): Promise<number> {
  return await Job.count(sql, "organization_id = $1 AND state IN ('queued', 'running')", [organizationId])
}

export function findJob(sql: Sql, setId: string, id: string): Promise<Job | null> {
  return Job.find(sql, "set_id = $1 AND id = $2", [setId, id])
}

export function pageJobs(sql: Sql, setId: string, page: PageRequest): Promise<Page<Job>> {
  return Job.page(sql, { text: "SELECT * FROM question_set_jobs WHERE set_id = $1", values: [setId] }, page)
}

export function findLastCheck(sql: Sql, setId: string): Promise<Job | null> {
  return Job.find(sql, "set_id = $1 AND kind = 'check' ORDER BY id DESC LIMIT 1", [setId])
}

/** Texts that a job was given are not kept longer than it needs them. */
const inputLeft = "CASE kind WHEN 'next' THEN '{}' ELSE input END"

/** One that waits ends at once; one that runs is told when its gateway looks next. */
export function cancelJob(sql: Sql, setId: string, id: string, now: Date): Promise<Job | null> {
  return Job.first(
    sql,
    `UPDATE question_set_jobs SET cancel_requested = true,
       finished_at = CASE state WHEN 'queued' THEN $3 ELSE finished_at END,
       input = CASE state WHEN 'queued' THEN ${inputLeft} ELSE input END,
       state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END
     WHERE set_id = $1 AND id = $2 RETURNING *`,
    [setId, id, now],
  )
}

const due = "(state = 'queued' OR (state = 'running' AND leased_until < $1)) AND kind = ANY($2::text[])"

/** Organizations with jobs of these kinds that wait, or whose gateway is gone. */
export function listJobOrganizations(sql: Sql, kinds: readonly Job["kind"][], now: Date): Promise<string[]> {
  return listOrganizations(sql, `question_set_jobs WHERE ${due}`, [now, kinds])
}

/** The organization's oldest job of these kinds that waits, or whose gateway is gone; null when there is none. */
export function claimJob(
  sql: Sql,
  organizationId: string,
  { now, until, kinds }: Lease & { readonly kinds: readonly Job["kind"][] },
): Promise<Job | null> {
  return Job.first(
    sql,
    `UPDATE question_set_jobs SET state = 'running', attempts = attempts + 1, leased_until = $3, started_at = $1
     WHERE id = (SELECT id FROM question_set_jobs WHERE organization_id = $4 AND ${due}
       ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *`,
    [now, kinds, until, organizationId],
  )
}

/** Null when the job is gone or another gateway has it. */
export function renewJob(sql: Sql, job: Job, progress: number, leasedUntil: Date): Promise<Job | null> {
  return Job.first(
    sql,
    `UPDATE question_set_jobs SET progress = greatest(progress, $3), leased_until = $4
     WHERE id = $1 AND attempts = $2 AND state = 'running' RETURNING *`,
    [job.id, job.attempts, progress, leasedUntil],
  )
}

/** Whether this claim still holds the job, which no other can take until the transaction ends. */
export async function lockHeldJob(sql: Sql, job: Job): Promise<boolean> {
  const rows = await sql.query(
    "SELECT id FROM question_set_jobs WHERE id = $1 AND attempts = $2 AND state = 'running' FOR UPDATE",
    [job.id, job.attempts],
  )
  return rows.length > 0
}

/** For a gateway that stops: another takes it, or this one when it starts again. */
export async function returnJob(sql: Sql, job: Job): Promise<void> {
  await sql.query(
    `UPDATE question_set_jobs SET state = 'queued', attempts = attempts - 1, leased_until = NULL
     WHERE id = $1 AND attempts = $2 AND state = 'running'`,
    [job.id, job.attempts],
  )
}

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
export async function endJob(sql: Sql, job: Job, end: JobEnd, now: Date): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE question_set_jobs SET state = $3, result = $4, error = $5, finished_at = $6, leased_until = NULL,
       input = ${inputLeft},
       progress = CASE $3 WHEN 'succeeded' THEN 1 ELSE progress END
     WHERE id = $1 AND attempts = $2 AND state = 'running' RETURNING id`,
    [job.id, job.attempts, end.state, end.result, end.error, now],
  )
  return rows.length > 0
}

const ShadowResult = table("question_set_shadow_results", {
  setId: text,
  at: timestamp,
  question: text,
  version: integer,
  shadowVersion: integer,
  shadowModel: text,
  verdict: text,
  shadowVerdict: text,
  confidence: number,
  shadowConfidence: number,
})
export type ShadowResult = Omit<RowOf<typeof ShadowResult>, "setId" | "at">

/** Also forgets the oldest beyond `keptMax` of the set. */
export async function insertShadowResults(
  sql: Sql,
  setId: string,
  results: readonly ShadowResult[],
  { at, keptMax }: { readonly at: Date; readonly keptMax: number },
): Promise<void> {
  for (const result of results) await ShadowResult.insert(sql, { setId, at, ...result })
  await sql.query(
    `DELETE FROM question_set_shadow_results WHERE set_id = $1 AND id <=
       (SELECT id FROM question_set_shadow_results WHERE set_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1)`,
    [setId, keptMax],
  )
}

const ShadowReportRow = row({
  question: text,
  version: integer,
  shadowVersion: integer,
  shadowModel: text,
  answers: integer,
  flips: integer,
  meanShift: number,
  abstained: integer,
  shadowAbstained: integer,
  firstAt: timestamp,
  lastAt: timestamp,
})
export type ShadowReportRow = RowOf<typeof ShadowReportRow>

export function reportShadow(sql: Sql, setId: string): Promise<ShadowReportRow[]> {
  return ShadowReportRow.all(
    sql,
    `SELECT question, version, shadow_version, shadow_model, count(*)::int AS answers,
       (count(*) FILTER (WHERE verdict <> shadow_verdict))::int AS flips,
       avg(abs(confidence - shadow_confidence))::float8 AS mean_shift,
       (count(*) FILTER (WHERE verdict = 'abstain'))::int AS abstained,
       (count(*) FILTER (WHERE shadow_verdict = 'abstain'))::int AS shadow_abstained,
       min(at) AS first_at, max(at) AS last_at
     FROM question_set_shadow_results WHERE set_id = $1
     GROUP BY question, version, shadow_version, shadow_model ORDER BY max(at) DESC, question`,
    [setId],
  )
}
