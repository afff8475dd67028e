/** What the gateways of an installation know of each other: how each stands, and which workers are drained. */
import { type RowOf, row, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const GatewayRow = row({
  id: text,
  /** JSON. */
  report: text,
  seenAt: timestamp,
})
type GatewayRow = RowOf<typeof GatewayRow>

export async function saveGateway(sql: Sql, { id, report, seenAt }: GatewayRow): Promise<void> {
  await sql.query(
    `INSERT INTO gateways (id, report, seen_at) VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET report = excluded.report, seen_at = excluded.seen_at`,
    [id, report, seenAt],
  )
}

export async function removeGateway(sql: Sql, id: string): Promise<void> {
  await sql.query("DELETE FROM gateways WHERE id = $1", [id])
}

/** Those not seen since are forgotten. */
export async function listGateways(sql: Sql, since: Date): Promise<GatewayRow[]> {
  await sql.query("DELETE FROM gateways WHERE seen_at < $1", [since])
  return await GatewayRow.all(sql, "SELECT id, report, seen_at FROM gateways ORDER BY id", [])
}

export async function drainWorker(sql: Sql, workerId: string, drainedAt: Date): Promise<void> {
  await sql.query(
    "INSERT INTO drained_workers (worker_id, drained_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    [workerId, drainedAt],
  )
}

export async function undrainWorker(sql: Sql, workerId: string): Promise<void> {
  await sql.query("DELETE FROM drained_workers WHERE worker_id = $1", [workerId])
}

export function listDrainedWorkers(sql: Sql): Promise<string[]> {
  return text.all(sql, "SELECT worker_id FROM drained_workers ORDER BY worker_id")
}
