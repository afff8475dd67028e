/** What several gateways count together: one row for each key, by the generic cell rate algorithm. */
import { createHash } from "node:crypto"
import type { Rate } from "../base/rate-limiter.ts"
import { column, part, row, run, runCounted } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface CountedRate {
  readonly key: string
  readonly rate: Rate
  /** What one gateway counted since it last told the store; 0 only asks. */
  readonly count: number
}

const nowMs = "(extract(epoch FROM statement_timestamp()) * 1000)::float8"

const Backlog = row({ key: column.text, backlog: column.number })

/** Adds what was counted; answers, for each key, how many count now, of all gateways. */
export async function addToRateBuckets(
  sql: Sql,
  counted: readonly CountedRate[],
): Promise<ReadonlyMap<string, number>> {
  const keyOf = new Map(counted.map(({ key }) => [digest(key), key]))
  const counts = counted.map(({ count }) => String(count))
  const intervals = counted.map(({ rate }) => String(rate.intervalMs))
  const rows = await Backlog.all(sql)`INSERT INTO rate_buckets AS b (key, arrival_ms, interval_ms)
    SELECT c.key, ${part(nowMs)} + c.count * c.interval_ms, c.interval_ms
    FROM unnest(${counted.map(({ key }) => digest(key))}::text[], ${counts}::float8[],
      ${intervals}::float8[]) AS c (key, count,
      interval_ms) ORDER BY c.key
    ON CONFLICT (key) DO UPDATE SET interval_ms = excluded.interval_ms, arrival_ms = excluded.arrival_ms
      + GREATEST(0, b.arrival_ms - ${part(nowMs)}) * excluded.interval_ms / b.interval_ms
    RETURNING key, GREATEST(0, arrival_ms - ${part(nowMs)}) / interval_ms AS backlog`
  return new Map(rows.map(({ key, backlog }) => [keyOf.get(key) ?? key, backlog]))
}

/** They start again with their whole burst. */
export async function deleteRateBuckets(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await run(sql)`DELETE FROM rate_buckets WHERE key = ANY (${keys.map(digest)}::text[])`
}

/** Removes at most `limit` buckets in which nothing counts any more; returns how many. */
export const purgeRateBuckets = (sql: Sql, limit: number) =>
  runCounted(sql)`DELETE FROM rate_buckets WHERE key IN
    (SELECT key FROM rate_buckets WHERE arrival_ms < ${part(nowMs)} LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING key`

const seenWithin = "interval '60 seconds'"

/** Says that this gateway lives, and returns how many do. */
export async function announceGateway(sql: Sql, gatewayId: string): Promise<number> {
  const others = await column.integer.one(sql)`WITH seen AS (
      INSERT INTO rate_gateways (gateway_id, seen_at) VALUES (${gatewayId}, statement_timestamp())
      ON CONFLICT (gateway_id) DO UPDATE SET seen_at = excluded.seen_at
    ), gone AS (
      DELETE FROM rate_gateways
      WHERE gateway_id <> ${gatewayId} AND seen_at < statement_timestamp() - 10 * ${part(seenWithin)}
    )
    SELECT count(*) FROM rate_gateways
    WHERE gateway_id <> ${gatewayId} AND seen_at > statement_timestamp() - ${part(seenWithin)}`
  return 1 + others
}

export const forgetGateway = (sql: Sql, gatewayId: string) =>
  run(sql)`DELETE FROM rate_gateways WHERE gateway_id = ${gatewayId}`

/** Keys name addresses and e-mail addresses, and are as long as those. */
const digest = (key: string): string => createHash("sha256").update(key).digest("base64url")
