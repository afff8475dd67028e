/** The people who sign in. */
import { insertRecord, queryRecord, updateRecord, type NewRecord } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface User {
  readonly id: string
  /** As it was typed; unique whatever its case. */
  readonly email: string
  readonly name: string | null
  readonly passwordHash: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Returns null when another user has the address. */
export function insertUser(sql: Sql, user: NewRecord<User>): Promise<User | null> {
  return insertRecord<User>(sql, "users", { ...user }, "ON CONFLICT ((lower(email))) DO NOTHING")
}

export function findUser(sql: Sql, id: string): Promise<User | null> {
  return queryRecord<User>(sql, "SELECT * FROM users WHERE id = $1", [id])
}

/** Holds others who lock the user back until the transaction ends. */
export function lockUser(sql: Sql, id: string): Promise<User | null> {
  return queryRecord<User>(sql, "SELECT * FROM users WHERE id = $1 FOR NO KEY UPDATE", [id])
}

export function findUserByEmail(sql: Sql, email: string): Promise<User | null> {
  return queryRecord<User>(sql, "SELECT * FROM users WHERE lower(email) = lower($1)", [email])
}

export function findFirstUser(sql: Sql): Promise<User | null> {
  return queryRecord<User>(sql, "SELECT * FROM users ORDER BY id LIMIT 1", [])
}

export function updateUser(
  sql: Sql,
  id: string,
  changes: Partial<Pick<User, "email" | "name" | "passwordHash">>,
  updatedAt: Date,
): Promise<User | null> {
  return updateRecord<User>(sql, {
    table: "users",
    where: "id = $1",
    whereValues: [id],
    changes: { ...changes, updatedAt },
  })
}

/** Whether this installation has been set up: a fresh one creates its first user. */
export async function hasUsers(sql: Sql): Promise<boolean> {
  const [row] = await sql.query<{ present: boolean }>("SELECT EXISTS (SELECT FROM users) AS present")
  return row?.present === true
}

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
