/** Remembers the answers to writes, so that a repeated request is answered again instead of done again. */
import { queryRecord } from "./rows.ts"
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
  | { readonly kind: "claimed" }
  /** `requestHash` is of the first request: the caller refuses another body under the same key. */
  | { readonly kind: "running"; readonly requestHash: Uint8Array }
  | {
      readonly kind: "completed"
      readonly requestHash: Uint8Array
      readonly status: number
      readonly body: string | null
    }

const claimAttemptsMax = 3

interface KeyRow {
  readonly requestHash: Uint8Array
  readonly status: number | null
  readonly body: string | null
}

/**
 * Takes the key for this attempt when it is new, forgotten, or held by a dead attempt at the same request; else answers
 * who has it. Not inside the transaction of the work itself: others must see the claim while the work runs.
 */
export async function claimIdempotencyKey(sql: Sql, claim: IdempotencyClaim): Promise<ClaimOutcome> {
  for (let attempt = 1; attempt <= claimAttemptsMax; attempt++) {
    if (await take(sql, claim)) return { kind: "claimed" }
    const held = await findHeld(sql, claim)
    // Released between the two statements: free again.
    if (held === null) continue
    const { requestHash, status, body } = held
    return status === null
      ? { kind: "running", requestHash }
      : { kind: "completed", requestHash, status, body }
  }
  // Others keep taking and releasing it; the caller waits, as for one that runs.
  return { kind: "running", requestHash: claim.requestHash }
}

async function take(sql: Sql, claim: IdempotencyClaim): Promise<boolean> {
  const taken = await sql.query(
    `INSERT INTO idempotency_keys AS k (scope, key, request_hash, attempt_id, created_at, running_until, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (scope, key) DO UPDATE SET request_hash = excluded.request_hash, attempt_id = excluded.attempt_id,
       created_at = excluded.created_at, running_until = excluded.running_until, expires_at = excluded.expires_at,
       status = NULL, body = NULL
     WHERE k.expires_at <= $5 OR (k.status IS NULL AND k.running_until <= $5 AND k.request_hash = $3)
     RETURNING key`,
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
  return taken.length > 0
}

function findHeld(sql: Sql, { scope, key }: IdempotencyClaim): Promise<KeyRow | null> {
  return queryRecord<KeyRow>(sql, "SELECT * FROM idempotency_keys WHERE scope = $1 AND key = $2", [
    scope,
    key,
  ])
}

/** Best in the transaction of the work. Answers false when another attempt has taken over: then the work must not commit. */
export async function completeIdempotencyKey(
  sql: Sql,
  claim: Pick<IdempotencyClaim, "scope" | "key" | "attemptId">,
  answer: { readonly status: number; readonly body: string | null },
): Promise<boolean> {
  const completed = await sql.query(
    `UPDATE idempotency_keys SET status = $4, body = $5
     WHERE scope = $1 AND key = $2 AND attempt_id = $3 AND status IS NULL RETURNING key`,
    [claim.scope, claim.key, claim.attemptId, answer.status, answer.body],
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

/** Removes at most `limit` forgotten keys, and answers how many. */
export async function purgeIdempotencyKeys(sql: Sql, now: Date, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM idempotency_keys WHERE (scope, key) IN
       (SELECT scope, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
     RETURNING key`,
    [now, limit],
  )
  return removed.length
}
