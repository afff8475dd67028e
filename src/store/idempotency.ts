/** Remembers the answers to writes, so that a repeated request is answered again instead of done again. */
import { z } from "zod"
import { column, row, type RowOf, run, runCounted } from "./rows.ts"
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
  requestHash: column.bytes,
  createdAt: column.timestamp,
  status: column.integer.nullable(),
  body: column.text.nullable(),
  headers: column.json(z.record(z.string(), z.string())),
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
    if (held !== null) return held
  }
  // Others keep taking and releasing it; the caller waits, as for one that runs.
  return { kind: "running", requestHash: claim.requestHash }
}

const take = (sql: Sql, claim: IdempotencyClaim) =>
  column.timestamp.first(sql)`INSERT INTO idempotency_keys AS k (scope, key, request_hash, attempt_id,
      created_at, running_until, expires_at)
    VALUES (${claim.scope}, ${claim.key}, ${claim.requestHash}, ${claim.attemptId}, ${claim.now},
      ${claim.runningUntil}, ${claim.expiresAt})
    ON CONFLICT (scope, key) DO UPDATE
    SET request_hash = excluded.request_hash, attempt_id = excluded.attempt_id,
      created_at = CASE WHEN k.expires_at <= ${claim.now} THEN excluded.created_at ELSE k.created_at END,
        running_until = excluded.running_until, expires_at = excluded.expires_at,
      status = NULL, body = NULL, headers = '{}'
    WHERE k.expires_at <= ${claim.now} OR (k.status IS NULL AND k.running_until <= ${claim.now}
      AND k.request_hash = ${claim.requestHash})
    RETURNING created_at`

type HeldKey = Exclude<ClaimOutcome, { readonly kind: "claimed" }>

const findHeld = async (sql: Sql, { scope, key }: Pick<IdempotencyClaim, "scope" | "key">) =>
  outcomeOf(await KeyRow.first(sql)`SELECT * FROM idempotency_keys WHERE scope = ${scope} AND key = ${key}`)

/** Who has the key, for a request that would not take it: null when it is new, forgotten, or held by a dead attempt. */
export const findIdempotencyKey = async (
  sql: Sql,
  { scope, key, now }: Pick<IdempotencyClaim, "scope" | "key" | "now">,
) =>
  outcomeOf(
    await KeyRow.first(sql)`SELECT * FROM idempotency_keys
      WHERE scope = ${scope} AND key = ${key} AND expires_at > ${now}
        AND (status IS NOT NULL OR running_until > ${now})`,
  )

function outcomeOf(held: KeyRow | null): HeldKey | null {
  if (held === null) return null
  const { requestHash, status, body, headers } = held
  return status === null
    ? { kind: "running", requestHash }
    : { kind: "completed", requestHash, status, body, headers }
}

/** An attempt at the work of a key. */
export type ClaimedKey = Pick<IdempotencyClaim, "scope" | "key" | "attemptId">

/** Keeps claims from counting as dead until then. */
export async function renewIdempotencyKeys(
  sql: Sql,
  claims: readonly ClaimedKey[],
  until: Date,
): Promise<void> {
  await run(sql)`UPDATE idempotency_keys k SET running_until = ${until}
    FROM unnest(${claims.map(({ scope }) => scope)}::text[], ${claims.map(({ key }) => key)}::text[],
      ${claims.map(({ attemptId }) => attemptId)}::text[]) AS claim (scope, key, attempt_id)
    WHERE k.scope = claim.scope AND k.key = claim.key AND k.attempt_id = claim.attempt_id AND k.status IS NULL`
}

/** Best in the transaction of the work. Returns false when another attempt has taken over: then the work must not commit. */
export const completeIdempotencyKey = async (
  sql: Sql,
  claim: ClaimedKey,
  answer: {
    readonly status: number
    readonly body: string | null
    readonly headers: Readonly<Record<string, string>>
  },
) =>
  (await runCounted(sql)`UPDATE idempotency_keys
    SET status = ${answer.status}, body = ${answer.body}, headers = ${JSON.stringify(answer.headers)}
    WHERE scope = ${claim.scope} AND key = ${claim.key} AND attempt_id = ${claim.attemptId}
      AND status IS NULL RETURNING key`) > 0

/** After a failure that changed nothing, so that the request can be made again at once. */
export const releaseIdempotencyKey = (sql: Sql, claim: ClaimedKey) =>
  run(sql)`DELETE FROM idempotency_keys
    WHERE scope = ${claim.scope} AND key = ${claim.key} AND attempt_id = ${claim.attemptId}
      AND status IS NULL`

/** Removes at most `limit` forgotten keys, and returns how many. */
export const purgeIdempotencyKeys = (sql: Sql, now: Date, limit: number) =>
  runCounted(sql)`DELETE FROM idempotency_keys WHERE (scope, key) IN
      (SELECT scope, key FROM idempotency_keys WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${limit})
    RETURNING key`
