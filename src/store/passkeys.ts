/** Passkeys of users, and the challenges that wait for an answer of one. */
import { column, type NewRowOf, type RowOf, run, runCounted, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const Passkey = table("passkeys", {
  id: column.text,
  userId: column.text,
  /** As the authenticator names it, in base64url. */
  credentialId: column.text,
  publicKey: column.bytes,
  signCount: column.bigint,
  name: column.text,
  createdAt: column.timestamp,
  lastUsedAt: column.timestamp.nullable(),
})
export type Passkey = RowOf<typeof Passkey>

export const listPasskeys = (sql: Sql, userId: string) => Passkey.list(sql)`user_id = ${userId} ORDER BY id`

export const countPasskeys = (sql: Sql, userId: string) =>
  column.integer.one(sql)`SELECT count(*) FROM passkeys WHERE user_id = ${userId}`

export const findPasskey = (sql: Sql, credentialId: string) =>
  Passkey.find(sql)`credential_id = ${credentialId}`

/** False where the authenticator is known already. */
export const insertPasskey = async (sql: Sql, given: NewRowOf<typeof Passkey>) =>
  (await runCounted(sql)`INSERT INTO passkeys
    (id, user_id, credential_id, public_key, sign_count, name, created_at)
    VALUES (${given.id}, ${given.userId}, ${given.credentialId}, ${given.publicKey}, ${given.signCount},
      ${given.name}, ${given.createdAt})
    ON CONFLICT (credential_id) DO NOTHING RETURNING id`) > 0

/** False where the authenticator has counted no further: there is a copy of it. */
export const usePasskey = async (sql: Sql, id: string, { signCount, at }: { signCount: bigint; at: Date }) =>
  (await runCounted(sql)`UPDATE passkeys SET sign_count = ${signCount}, last_used_at = ${at}
    WHERE id = ${id} AND (sign_count < ${signCount} OR (sign_count = 0 AND ${signCount}::bigint = 0))
    RETURNING id`) > 0

export const deletePasskey = async (sql: Sql, userId: string, id: string) =>
  (await runCounted(sql)`DELETE FROM passkeys WHERE user_id = ${userId} AND id = ${id} RETURNING id`) > 0

export const deletePasskeys = (sql: Sql, userId: string) =>
  run(sql)`DELETE FROM passkeys WHERE user_id = ${userId}`

const Challenge = table("passkey_challenges", {
  challengeHash: column.bytes,
  userId: column.text.nullable(),
  expiresAt: column.timestamp,
})

export const insertChallenge = async (sql: Sql, challenge: NewRowOf<typeof Challenge>): Promise<void> =>
  void (await Challenge.insert(sql, challenge))

/** True once for each. */
export const takeChallenge = async (
  sql: Sql,
  { hash, userId, now }: { hash: Uint8Array; userId: string | null; now: Date },
) =>
  (await runCounted(sql)`DELETE FROM passkey_challenges
    WHERE challenge_hash = ${hash} AND user_id IS NOT DISTINCT FROM ${userId} AND expires_at > ${now}
    RETURNING expires_at`) > 0

export const purgeChallenges = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`DELETE FROM passkey_challenges WHERE challenge_hash IN (SELECT challenge_hash
    FROM passkey_challenges WHERE expires_at < ${before} ORDER BY expires_at LIMIT ${limit})
    RETURNING expires_at`
