/** Remembers the answers to writes, so that a repeated request is answered again instead of done again. */
import { z } from "zod"
import { type RowOf, bytes, integer, json, row, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface IdempotencyClaim {
  /** Who, what method, what path. */
  readonly scope: string
  readonly key: string
  /** SHA-256 of the body. */
  readonly requestHash: Uint8Array
  /** Names this attempt; only it can complete or release the claim. */
  readonly attemptId: string
  readonly now: Date
  /** After this the attempt counts as dead, and a repeated request may take over. */
  readonly runningUntil: Date
  /** After this the key is forgotten. */
  readonly expiresAt: Date
}

export type ClaimOutcome =
  /** `claimedAt`: when the first attempt began, which may be one that died. */
  | { readonly kind: "claimed"; readonly claimedAt: Date }
  /** `requestHash` is of the first request: the caller refuses another body under the same key. */
  | { readonly kind: "running"; readonly requestHash: Uint8Array }
  | {
      readonly kind: "completed"
      readonly requestHash: Uint8Array
      readonly status: number
      readonly body: string | null
      readonly headers: Readonly<Record<string, string>>
    }

const claimAttemptsMax = 3

const KeyRow = row({
  requestHash: bytes,
  createdAt: timestamp,
  status: integer.nullable(),
  body: text.nullable(),
  headers: json(z.record(z.string(), z.string())),
})
type KeyRow = RowOf<typeof KeyRow>

/**
 * Takes the key for this attempt when it is new, forgotten, or held by a dead attempt at the same request; else answers
 * who has it. Not inside the transaction of the work itself: others must see the claim while the work runs.
 */
export async function claimIdempotencyKey(sql: Sql, claim: IdempotencyClaim): Promise<ClaimOutcome> {
  for (let attempt = 1; attempt <= claimAttemptsMax; attempt++) {
    const claimedAt = await take(sql, claim)
    if (claimedAt) return { kind: "claimed", claimedAt }
    const held = await findHeld(sql, claim)
    // Released between the two statements: free again.
    if (held === null) continue
    const { requestHash, status, body, headers } = held
    return status === null
      ? { kind: "running", requestHash }
      : { kind: "completed", requestHash, status, body, headers }
  }
  // Others keep taking and releasing it; the caller waits, as for one that runs.
  return { kind: "running", requestHash: claim.requestHash }
}

async function take(sql: Sql, claim: IdempotencyClaim): Promise<Date | null> {
  return await timestamp.first(
    sql,
    `INSERT INTO idempotency_keys AS k (scope, key, request_hash, attempt_id, created_at, running_until, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (scope, key) DO UPDATE SET request_hash = excluded.request_hash, attempt_id = excluded.attempt_id,
       created_at = CASE WHEN k.expires_at <= $5 THEN excluded.created_at ELSE k.created_at END, running_until = excluded.running_until, expires_at = excluded.expires_at,
       status = NULL, body = NULL, headers = '{}'
     WHERE k.expires_at <= $5 OR (k.status IS NULL AND k.running_until <= $5 AND k.request_hash = $3)
     RETURNING created_at`,
    [
      claim.scope,
      claim.key,
      claim.requestHash,
      claim.attemptId,
      claim.now,
      claim.runningUntil,
      claim.expiresAt,
    ],
  )
}

function findHeld(sql: Sql, { scope, key }: IdempotencyClaim): Promise<KeyRow | null> {
  return KeyRow.first(sql, "SELECT * FROM idempotency_keys WHERE scope = $1 AND key = $2", [scope, key])
}

/** Best in the transaction of the work. Returns false when another attempt has taken over: then the work must not commit. */
export async function completeIdempotencyKey(
  sql: Sql,
  claim: Pick<IdempotencyClaim, "scope" | "key" | "attemptId">,
  answer: {
    readonly status: number
    readonly body: string | null
    readonly headers: Readonly<Record<string, string>>
  },
): Promise<boolean> {
  const completed = await sql.query(
    `UPDATE idempotency_keys SET status = $4, body = $5, headers = $6
     WHERE scope = $1 AND key = $2 AND attempt_id = $3 AND status IS NULL RETURNING key`,
    [claim.scope, claim.key, claim.attemptId, answer.status, answer.body, JSON.stringify(answer.headers)],
  )
  return completed.length > 0
}

/** After a failure that changed nothing, so that the request can be made again at once. */
export async function releaseIdempotencyKey(
  sql: Sql,
  claim: Pick<IdempotencyClaim, "scope" | "key" | "attemptId">,
): Promise<void> {
  await sql.query(
    "DELETE FROM idempotency_keys WHERE scope = $1 AND key = $2 AND attempt_id = $3 AND status IS NULL",
    [claim.scope, claim.key, claim.attemptId],
  )
}

/** Removes at most `limit` forgotten keys, and returns how many. */
export async function purgeIdempotencyKeys(sql: Sql, now: Date, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM idempotency_keys WHERE (scope, key) IN
       (SELECT scope, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
     RETURNING key`,
    [now, limit],
  )
  return removed.length
}
