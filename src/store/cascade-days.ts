/** What cascades sent on to which stage, and what shadows were asked; what it cost and what it changed, by the day; gateways add to it. */
import { column, row, type RowOf, run, runCounted } from "./rows.ts"
import type { Sql } from "./sql.ts"

const CascadeDay = row({
  organizationId: column.text,
  cascade: column.text,
  day: column.text,
  stage: column.integer,
  requests: column.integer,
  questions: column.integer,
  changed: column.integer,
  unanswered: column.integer,
  costTicks: column.bigint,
})
export type CascadeDay = RowOf<typeof CascadeDay>

/** Rows are added in one order, so that gateways do not lock each other out; those of organizations that are gone are dropped. */
export async function addCascadeDays(sql: Sql, days: readonly CascadeDay[]): Promise<void> {
  const rows = days.map(({ organizationId, cascade, day, stage, costTicks, ...counts }) => ({
    organization_id: organizationId,
    cascade,
    day,
    stage,
    requests: counts.requests,
    questions: counts.questions,
    changed: counts.changed,
    unanswered: counts.unanswered,
    cost_ticks: String(costTicks),
  }))
  await run(sql)`INSERT INTO cascade_days AS t
      (organization_id, cascade, day, stage, requests, questions, changed, unanswered, cost_ticks)
    SELECT g.organization_id, g.cascade, g.day, g.stage, g.requests, g.questions, g.changed, g.unanswered, g.cost_ticks
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS g (organization_id text, cascade text, day date,
      stage int, requests bigint, questions bigint, changed bigint, unanswered bigint, cost_ticks bigint)
    JOIN organizations o ON o.id = g.organization_id COLLATE "C"
    ORDER BY g.organization_id COLLATE "C", g.cascade COLLATE "C", g.day, g.stage
    ON CONFLICT (organization_id, cascade, day, stage) DO UPDATE SET requests = t.requests + excluded.requests,
      questions = t.questions + excluded.questions, changed = t.changed + excluded.changed,
      unanswered = t.unanswered + excluded.unanswered, cost_ticks = t.cost_ticks + excluded.cost_ticks`
}

/** What a shadow of a question set is counted under; no virtual model can be named so. */
export const shadowDays = (setId: string): string => `set:${setId}`

type NamedCascade = Pick<CascadeDay, "organizationId" | "cascade">

const Spent = row({ organizationId: column.text, cascade: column.text, ticks: column.bigint })

/** What later stages of these cascades cost on the day; of those that cost nothing there is no row. */
export const sumEscalations = (sql: Sql, day: string, cascades: readonly NamedCascade[]) =>
  Spent.all(sql)`SELECT organization_id, cascade, sum(cost_ticks) AS ticks FROM cascade_days
    JOIN unnest(${cascades.map(({ organizationId }) => organizationId)}::text[],
      ${cascades.map(({ cascade }) => cascade)}::text[]) AS n (o, c) ON organization_id = n.o AND cascade = n.c
    WHERE day = ${day} AND stage > 0 GROUP BY 1, 2`

export const listCascadeDays = (sql: Sql, { organizationId, cascade }: NamedCascade, limit: number) =>
  CascadeDay.all(
    sql,
  )`SELECT * FROM cascade_days WHERE organization_id = ${organizationId} AND cascade = ${cascade}
    ORDER BY day DESC, stage LIMIT ${limit}`

/** Answers how many rows were removed. */
export const purgeCascadeDays = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`DELETE FROM cascade_days WHERE (organization_id, cascade, day, stage) IN
    (SELECT organization_id, cascade, day, stage FROM cascade_days WHERE day < ${before} LIMIT ${limit})
    RETURNING stage`
