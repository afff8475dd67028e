/** What the gateways of an installation know of each other: how each stands, and which workers are drained. */
import { column, row, type RowOf, run } from "./rows.ts"
import type { Sql } from "./sql.ts"

const GatewayRow = row({
  id: column.text,
  /** JSON. */
  report: column.text,
  /** By the clock of the database: those of gateways may differ. */
  seenSAgo: column.integer,
})
type GatewayRow = RowOf<typeof GatewayRow>

export const saveGateway = (sql: Sql, { id, report }: Omit<GatewayRow, "seenSAgo">) =>
  run(sql)`INSERT INTO gateways (id, report, seen_at) VALUES (${id}, ${report}, now())
    ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen_at = excluded.seen_at`

export const removeGateway = (sql: Sql, id: string) => run(sql)`DELETE FROM gateways WHERE id = ${id}`

/** Those not seen for a day are forgotten. */
export async function listGateways(sql: Sql): Promise<GatewayRow[]> {
  await run(sql)`DELETE FROM gateways WHERE seen_at < now() - interval '1 day'`
  return await GatewayRow.all(
    sql,
  )`SELECT id, report, greatest(0, extract(epoch FROM now() - seen_at)::int) AS seen_s_ago
    FROM gateways ORDER BY id`
}

/** Credit in leases of gateways that have said nothing for a minute: their accounts lack it until they return or are released. */
export const sumHeldBySilent = (sql: Sql) =>
  column.bigint.one(sql)`SELECT coalesce(sum(held_ticks), 0) FROM leases l WHERE NOT EXISTS (
    SELECT 1 FROM gateways g WHERE g.id = l.gateway_id AND g.seen_at > now() - interval '1 minute')`

export const drainWorker = (sql: Sql, workerId: string, drainedAt: Date) =>
  run(sql)`INSERT INTO drained_workers (worker_id, drained_at) VALUES (${workerId}, ${drainedAt})
    ON CONFLICT DO NOTHING`

export const undrainWorker = (sql: Sql, workerId: string) =>
  run(sql)`DELETE FROM drained_workers WHERE worker_id = ${workerId}`

export const listDrainedWorkers = (sql: Sql) =>
  column.text.all(sql)`SELECT worker_id FROM drained_workers ORDER BY worker_id`
