/** How each gateway sees its workers. */
import { queryRecords } from "../rows.ts"
import type { Sql } from "../sql.ts"

export interface WorkerView {
  readonly model: string
  readonly id: string
  readonly isUp: boolean
}

export async function putWorkerViews(
  sql: Sql,
  gatewayId: string,
  workers: readonly WorkerView[],
  at: Date,
): Promise<void> {
  await sql.query(
    `INSERT INTO worker_views (gateway_id, workers, at) VALUES ($1, $2, $3)
     ON CONFLICT (gateway_id) DO UPDATE SET workers = excluded.workers, at = excluded.at`,
    [gatewayId, JSON.stringify(workers), at],
  )
}

/** Those of gateways that have written since. */
export async function listWorkerViews(sql: Sql, since: Date): Promise<WorkerView[]> {
  const rows = await queryRecords<{ readonly workers: string }>(
    sql,
    "SELECT workers FROM worker_views WHERE at >= $1 ORDER BY gateway_id",
    [since],
  )
  // Written by putWorkerViews above.
  return rows.flatMap(({ workers }) => JSON.parse(workers) as WorkerView[])
}

/** Of one that stops, or of those that have been silent since. */
export async function deleteWorkerViews(
  sql: Sql,
  { gatewayId, before }: { readonly gatewayId?: string; readonly before?: Date },
): Promise<void> {
  await sql.query("DELETE FROM worker_views WHERE gateway_id = $1 OR at < $2", [
    gatewayId ?? null,
    before ?? null,
  ])
}
