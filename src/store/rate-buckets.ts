/** What several gateways count together: one row for each key, by the generic cell rate algorithm. */
import { createHash } from "node:crypto"
import type { Rate } from "../base/rate-limiter.ts"
import { integer, number, row, text } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface CountedRate {
  readonly key: string
  readonly rate: Rate
  /** What one gateway counted since it last told the store; 0 only asks. */
  readonly count: number
}

const nowMs = "(extract(epoch FROM statement_timestamp()) * 1000)::float8"

const Backlog = row({ key: text, backlog: number })

/** Adds what was counted; answers, for each key, how many count now, of all gateways. */
export async function addToRateBuckets(
  sql: Sql,
  counted: readonly CountedRate[],
): Promise<ReadonlyMap<string, number>> {
  const keyOf = new Map(counted.map(({ key }) => [digest(key), key]))
  const rows = await Backlog.all(
    sql,
    // In order of the keys, so that gateways that count at the same time do not deadlock.
    `INSERT INTO rate_buckets AS b (key, arrival_ms, interval_ms)
     SELECT c.key, ${nowMs} + c.count * c.interval_ms, c.interval_ms
     FROM unnest($1::text[], $2::float8[], $3::float8[]) AS c (key, count, interval_ms) ORDER BY c.key
     ON CONFLICT (key) DO UPDATE SET interval_ms = excluded.interval_ms, arrival_ms = excluded.arrival_ms
       + GREATEST(0, b.arrival_ms - ${nowMs}) * excluded.interval_ms / b.interval_ms
     RETURNING key, GREATEST(0, arrival_ms - ${nowMs}) / interval_ms AS backlog`,
    [
      counted.map(({ key }) => digest(key)),
      counted.map(({ count }) => String(count)),
      counted.map(({ rate }) => String(rate.intervalMs)),
    ],
  )
  return new Map(rows.map(({ key, backlog }) => [keyOf.get(key) ?? key, backlog]))
}

/** They start again with their whole burst. */
export async function deleteRateBuckets(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await sql.query("DELETE FROM rate_buckets WHERE key = ANY ($1::text[])", [keys.map(digest)])
}

/** Removes at most `limit` buckets in which nothing counts any more; returns how many. */
export async function purgeRateBuckets(sql: Sql, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM rate_buckets WHERE key IN
       (SELECT key FROM rate_buckets WHERE arrival_ms < ${nowMs} LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING key`,
    [limit],
  )
  return removed.length
}

const seenWithin = "interval '60 seconds'"

/** Says that this gateway lives, and returns how many do. */
export async function announceGateway(sql: Sql, gatewayId: string): Promise<number> {
  const others = await integer.one(
    sql,
    `WITH seen AS (
       INSERT INTO rate_gateways (gateway_id, seen_at) VALUES ($1, statement_timestamp())
       ON CONFLICT (gateway_id) DO UPDATE SET seen_at = excluded.seen_at
     ), gone AS (
       DELETE FROM rate_gateways WHERE gateway_id <> $1 AND seen_at < statement_timestamp() - 10 * ${seenWithin}
     )
     SELECT count(*) FROM rate_gateways
     WHERE gateway_id <> $1 AND seen_at > statement_timestamp() - ${seenWithin}`,
    [gatewayId],
  )
  return 1 + others
}

export async function forgetGateway(sql: Sql, gatewayId: string): Promise<void> {
  await sql.query("DELETE FROM rate_gateways WHERE gateway_id = $1", [gatewayId])
}

/** Keys name addresses and e-mail addresses, and are as long as those. */
const digest = (key: string): string => createHash("sha256").update(key).digest("base64url")
