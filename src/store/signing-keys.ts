/** The public keys that workload access tokens are checked with; private keys are never stored. */
import { insertNew, queryRecords } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface SigningKey {
  readonly id: string
  readonly publicJwk: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  /** When the last token that it may have signed has expired. */
  readonly expiresAt: Date
}

export function insertSigningKey(sql: Sql, key: SigningKey): Promise<SigningKey> {
  return insertNew<SigningKey>(sql, "workload_signing_keys", { ...key })
}

/** Oldest first, without expired ones. */
export function listSigningKeys(sql: Sql, now: Date): Promise<SigningKey[]> {
  return queryRecords<SigningKey>(
    sql,
    "SELECT * FROM workload_signing_keys WHERE expires_at > $1 ORDER BY created_at, id",
    [now],
  )
}

export async function deleteExpiredSigningKeys(sql: Sql, now: Date): Promise<void> {
  await sql.query("DELETE FROM workload_signing_keys WHERE expires_at <= $1", [now])
}
