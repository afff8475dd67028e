/** The people who sign in. */
import { column, type NewRowOf, type RowOf, runCounted, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const User = table("users", {
  id: column.text,
  /** As it was typed; unique whatever its case. */
  email: column.text,
  name: column.text.nullable(),
  passwordHash: column.text.nullable(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
})
export type User = RowOf<typeof User>

/** Returns null when another user has the address. */
export const insertUser = (sql: Sql, user: NewRowOf<typeof User>) =>
  User.insertIfNew(sql, { ...user }, "ON CONFLICT ((lower(email))) DO NOTHING")

export const findUser = (sql: Sql, id: string) => User.find(sql)`id = ${id}`

/** Holds others who lock the user back until the transaction ends. */
export const lockUser = (sql: Sql, id: string) => User.find(sql)`id = ${id} FOR NO KEY UPDATE`

export const findUserByEmail = (sql: Sql, email: string) => User.find(sql)`lower(email) = lower(${email})`

export const findFirstUser = (sql: Sql) => User.first(sql)`SELECT * FROM users ORDER BY id LIMIT 1`

export const updateUser = (
  sql: Sql,
  id: string,
  changes: Partial<Pick<User, "email" | "name" | "passwordHash">>,
  updatedAt: Date,
) => User.update(sql, { ...changes, updatedAt })`id = ${id}`

/** Whether this installation has been set up: a fresh one creates its first user. */
export const hasUsers = (sql: Sql) => column.boolean.one(sql)`SELECT EXISTS (SELECT FROM users)`

const SsoIdentity = table("sso_identities", {
  issuer: column.text,
  subject: column.text,
  userId: column.text,
  createdAt: column.timestamp,
})
type SsoIdentity = RowOf<typeof SsoIdentity>

export const findUserByIdentity = (sql: Sql, issuer: string, subject: string) =>
  User.first(sql)`SELECT u.* FROM users u JOIN sso_identities i ON i.user_id = u.id
    WHERE i.issuer = ${issuer} AND i.subject = ${subject}`

/** Returns null when the subject is bound already. */
export const insertSsoIdentity = (sql: Sql, identity: SsoIdentity) =>
  SsoIdentity.insertIfNew(sql, { ...identity }, "ON CONFLICT DO NOTHING")

export const hasSsoIdentity = async (sql: Sql, userId: string) =>
  (await runCounted(sql)`SELECT FROM sso_identities WHERE user_id = ${userId} LIMIT 1`) > 0
