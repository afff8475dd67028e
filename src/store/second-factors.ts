/** What signing in asks for beside the password: time-based codes, and recovery codes for who lost the app. */
import { column, type RowOf, run, runCounted, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const SecondFactor = table("second_factors", {
  userId: column.text,
  /** Encrypted. */
  secret: column.text,
  confirmedAt: column.timestamp.nullable(),
  lastStep: column.bigint.withDefault(),
  createdAt: column.timestamp,
})
export type SecondFactor = RowOf<typeof SecondFactor>

export const findSecondFactor = (sql: Sql, userId: string) => SecondFactor.find(sql)`user_id = ${userId}`

/** Replaces one that was never confirmed. False where there is a confirmed one. */
export const beginSecondFactor = async (
  sql: Sql,
  { userId, secret, createdAt }: Pick<SecondFactor, "userId" | "secret" | "createdAt">,
) =>
  (await runCounted(sql)`INSERT INTO second_factors (user_id, secret, created_at)
    VALUES (${userId}, ${secret}, ${createdAt})
    ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, created_at = excluded.created_at, last_step = 0
      WHERE second_factors.confirmed_at IS NULL RETURNING user_id`) > 0

/** True the first time that a code of this step, or of a later one, is given. */
export const takeStep = async (sql: Sql, userId: string, step: number) =>
  (await runCounted(sql)`UPDATE second_factors SET last_step = ${step}
    WHERE user_id = ${userId} AND last_step < ${step} RETURNING user_id`) > 0

export const confirmSecondFactor = (sql: Sql, userId: string, at: Date) =>
  run(sql)`UPDATE second_factors SET confirmed_at = ${at} WHERE user_id = ${userId}`

/** Ends those before. */
export async function replaceRecoveryCodes(
  sql: Sql,
  userId: string,
  hashes: readonly Uint8Array[],
): Promise<void> {
  await run(sql)`DELETE FROM recovery_codes WHERE user_id = ${userId}`
  for (const hash of hashes)
    await run(sql)`INSERT INTO recovery_codes (user_id, code_hash) VALUES (${userId}, ${hash})`
}

/** True once for each code. */
export const useRecoveryCode = async (
  sql: Sql,
  userId: string,
  { hash, at }: { hash: Uint8Array; at: Date },
) =>
  (await runCounted(sql)`UPDATE recovery_codes SET used_at = ${at}
    WHERE user_id = ${userId} AND code_hash = ${hash} AND used_at IS NULL RETURNING user_id`) > 0

export const countRecoveryCodes = (sql: Sql, userId: string) =>
  column.integer.one(sql)`SELECT count(*) FROM recovery_codes WHERE user_id = ${userId} AND used_at IS NULL`

/** The password alone signs in again. */
export async function deleteSecondFactor(sql: Sql, userId: string): Promise<void> {
  await run(sql)`DELETE FROM recovery_codes WHERE user_id = ${userId}`
  await run(sql)`DELETE FROM second_factors WHERE user_id = ${userId}`
}
