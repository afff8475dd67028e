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
