/** Console sessions, and the links that begin one without a password. */
import { insertNew, queryRecord, queryRecords, type NewRecord } from "./rows.ts"
import type { Sql } from "./sql.ts"
import { findUser, type User } from "./users.ts"

export interface Session {
  readonly id: string
  /** SHA-256 of the token. */
  readonly tokenHash: Uint8Array
  readonly userId: string
  readonly ip: string | null
  readonly userAgent: string | null
  readonly createdAt: Date
  readonly lastSeenAt: Date
  /** However busy the session is; idleness is the caller's to judge, by lastSeenAt. */
  readonly expiresAt: Date
  readonly revokedAt: Date | null
}

export interface SessionPrincipal {
  readonly session: Session
  readonly user: User
}

interface OneTimeLink {
  readonly tokenHash: Uint8Array
  readonly userId: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

export function insertSession(sql: Sql, session: NewRecord<Session>): Promise<Session> {
  return insertNew<Session>(sql, "sessions", { ...session })
}

/** Also answers an expired or revoked one. */
export async function findSessionPrincipal(
  sql: Sql,
  tokenHash: Uint8Array,
): Promise<SessionPrincipal | null> {
  const session = await queryRecord<Session>(sql, "SELECT * FROM sessions WHERE token_hash = $1", [tokenHash])
  const user = session === null ? null : await findUser(sql, session.userId)
  return session === null || user === null ? null : { session, user }
}

/** Never moves the time back, so that late reports of use do no harm. */
export async function touchSession(sql: Sql, id: string, seenAt: Date): Promise<void> {
  await sql.query("UPDATE sessions SET last_seen_at = GREATEST(last_seen_at, $2) WHERE id = $1", [id, seenAt])
}

/** Answers whether this call ended it. */
export async function revokeSession(sql: Sql, id: string, revokedAt: Date): Promise<boolean> {
  const ended = await sql.query(
    "UPDATE sessions SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id",
    [id, revokedAt],
  )
  return ended.length > 0
}

/** After a change of password, for example. Answers those it ended. */
export function revokeSessionsOfUser(sql: Sql, userId: string, revokedAt: Date): Promise<Session[]> {
  return queryRecords<Session>(
    sql,
    "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL RETURNING *",
    [userId, revokedAt],
  )
}

/** Removes at most `limit` sessions that ended before `before`, and answers how many. */
export async function purgeSessions(sql: Sql, before: Date, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
     RETURNING id`,
    [before, limit],
  )
  return removed.length
}

export async function insertOneTimeLink(sql: Sql, link: OneTimeLink): Promise<void> {
  await insertNew(sql, "one_time_links", { ...link })
}

/** Answers whose link it is, once; null when it is unknown, expired or used. */
export async function useOneTimeLink(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<string | null> {
  const link = await queryRecord<OneTimeLink>(
    sql,
    `UPDATE one_time_links SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING *`,
    [tokenHash, now],
  )
  return link?.userId ?? null
}

/** Ends every unused link of the user, as after a new link or a change of password. */
export async function endOneTimeLinks(sql: Sql, userId: string): Promise<void> {
  await sql.query("DELETE FROM one_time_links WHERE user_id = $1 AND used_at IS NULL", [userId])
}

/** Of those that exist, in the order in which their audit logs may be locked. */
export async function listOrganizationIdsOf(sql: Sql, userId: string, limit: number): Promise<string[]> {
  const rows = await sql.query<{ organization_id: string }>(
    `SELECT m.organization_id FROM memberships m JOIN organizations o ON o.id = m.organization_id
     WHERE m.user_id = $1 AND o.deleted_at IS NULL ORDER BY m.organization_id LIMIT $2`,
    [userId, limit],
  )
  return rows.map(({ organization_id }) => organization_id)
}
