/** Which user a single sign-on provider means by a subject. */
import { insertRecord, queryRecord } from "./rows.ts"
import type { Sql } from "./sql.ts"
import type { User } from "./users.ts"

export interface SsoIdentity {
  readonly issuer: string
  readonly subject: string
  readonly userId: string
  readonly createdAt: Date
}

export function findUserByIdentity(sql: Sql, issuer: string, subject: string): Promise<User | null> {
  return queryRecord<User>(
    sql,
    `SELECT u.* FROM users u JOIN sso_identities i ON i.user_id = u.id WHERE i.issuer = $1 AND i.subject = $2`,
    [issuer, subject],
  )
}

/** Returns null when the subject is bound already. */
export function insertSsoIdentity(sql: Sql, identity: SsoIdentity): Promise<SsoIdentity | null> {
  return insertRecord<SsoIdentity>(sql, "sso_identities", { ...identity }, "ON CONFLICT DO NOTHING")
}

export async function hasSsoIdentity(sql: Sql, userId: string): Promise<boolean> {
  const rows = await sql.query("SELECT FROM sso_identities WHERE user_id = $1 LIMIT 1", [userId])
  return rows.length > 0
}
