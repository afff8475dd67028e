/** The people who sign in. */
import { type NewRowOf, type RowOf, boolean, table, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const User = table("users", {
  id: text,
  /** As it was typed; unique whatever its case. */
  email: text,
  name: text.nullable(),
  passwordHash: text.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type User = RowOf<typeof User>

/** Returns null when another user has the address. */
export function insertUser(sql: Sql, user: NewRowOf<typeof User>): Promise<User | null> {
  return User.insertIfNew(sql, { ...user }, "ON CONFLICT ((lower(email))) DO NOTHING")
}

export function findUser(sql: Sql, id: string): Promise<User | null> {
  return User.find(sql, "id = $1", [id])
}

/** Holds others who lock the user back until the transaction ends. */
export function lockUser(sql: Sql, id: string): Promise<User | null> {
  return User.find(sql, "id = $1 FOR NO KEY UPDATE", [id])
}

export function findUserByEmail(sql: Sql, email: string): Promise<User | null> {
  return User.find(sql, "lower(email) = lower($1)", [email])
}

export function findFirstUser(sql: Sql): Promise<User | null> {
  return User.first(sql, "SELECT * FROM users ORDER BY id LIMIT 1", [])
}

export function updateUser(
  sql: Sql,
  id: string,
  changes: Partial<Pick<User, "email" | "name" | "passwordHash">>,
  updatedAt: Date,
): Promise<User | null> {
  return User.update(sql, {
    where: "id = $1",
    whereValues: [id],
    changes: { ...changes, updatedAt },
  })
}

/** Whether this installation has been set up: a fresh one creates its first user. */
export async function hasUsers(sql: Sql): Promise<boolean> {
  return await boolean.one(sql, "SELECT EXISTS (SELECT FROM users)")
}

const SsoIdentity = table("sso_identities", {
  issuer: text,
  subject: text,
  userId: text,
  createdAt: timestamp,
})
export type SsoIdentity = RowOf<typeof SsoIdentity>

export function findUserByIdentity(sql: Sql, issuer: string, subject: string): Promise<User | null> {
  return User.first(
    sql,
    `SELECT u.* FROM users u JOIN sso_identities i ON i.user_id = u.id WHERE i.issuer = $1 AND i.subject = $2`,
    [issuer, subject],
  )
}

/** Returns null when the subject is bound already. */
export function insertSsoIdentity(sql: Sql, identity: SsoIdentity): Promise<SsoIdentity | null> {
  return SsoIdentity.insertIfNew(sql, { ...identity }, "ON CONFLICT DO NOTHING")
}

export async function hasSsoIdentity(sql: Sql, userId: string): Promise<boolean> {
  const rows = await sql.query("SELECT FROM sso_identities WHERE user_id = $1 LIMIT 1", [userId])
  return rows.length > 0
}
