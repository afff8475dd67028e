/** Console sessions, and the links that begin one without a password. */
import { roles } from "../contract/access.ts"
import { sessionMethods } from "../contract/platform/sessions.ts"
import { type NewRowOf, type RowOf, bytes, oneOf, row, table, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"
import { findUser, type User } from "./users.ts"

const Session = table("sessions", {
  id: text,
  /** SHA-256 of the token. */
  tokenHash: bytes,
  userId: text,
  ip: text.nullable(),
  userAgent: text.nullable(),
  /** How it began; null where an earlier version began it. */
  method: oneOf(...sessionMethods).nullable(),
  createdAt: timestamp,
  lastSeenAt: timestamp,
  /** However busy the session is; idleness is the caller's to judge, by lastSeenAt. */
  expiresAt: timestamp,
  revokedAt: timestamp.nullable(),
})
export type Session = RowOf<typeof Session>

export type SessionMethod = (typeof sessionMethods)[number]

export interface SessionPrincipal {
  readonly session: Session
  readonly user: User
}

const OneTimeLink = table("one_time_links", {
  tokenHash: bytes,
  userId: text,
  createdAt: timestamp,
  expiresAt: timestamp,
})
type OneTimeLink = RowOf<typeof OneTimeLink>

export function insertSession(sql: Sql, session: NewRowOf<typeof Session>): Promise<Session> {
  return Session.insert(sql, { ...session })
}

/** Also returns an expired or revoked one. */
export async function findSessionPrincipal(
  sql: Sql,
  tokenHash: Uint8Array,
): Promise<SessionPrincipal | null> {
  const session = await Session.find(sql, "token_hash = $1", [tokenHash])
  const user = session === null ? null : await findUser(sql, session.userId)
  return session === null || user === null ? null : { session, user }
}

interface LiveSessions {
  readonly now: Date
  /** Those that were not seen since are idle for too long. */
  readonly seenAfter: Date
  readonly limit: number
  /** This one only. */
  readonly id?: string
}

const live = `s.revoked_at IS NULL AND s.expires_at > $2 AND s.last_seen_at > $3 AND ($5::text IS NULL OR s.id = $5)
  ORDER BY s.last_seen_at DESC, s.id DESC LIMIT $4`

/** Those that are valid, the latest first. */
export function listSessionsOfUser(
  sql: Sql,
  userId: string,
  { now, seenAfter, limit, id }: LiveSessions,
): Promise<Session[]> {
  return Session.all(sql, `SELECT s.* FROM sessions s WHERE s.user_id = $1 AND ${live}`, [
    userId,
    now,
    seenAfter,
    limit,
    id ?? null,
  ])
}

const MemberSession = row({
  ...Session.columns,
  email: text,
  name: text.nullable(),
  role: oneOf(...roles),
})

/**
 * The same of all members, except of those who are also members elsewhere: their sessions are not this organization's
 * alone. Organizations of one billing account count as one, and personal ones do not count.
 */
export function listMemberSessions(
  sql: Sql,
  organizationId: string,
  { now, seenAfter, limit, id }: LiveSessions,
): Promise<RowOf<typeof MemberSession>[]> {
  return MemberSession.all(
    sql,
    `SELECT s.*, u.email, u.name, m.role FROM sessions s JOIN users u ON u.id = s.user_id
     JOIN memberships m ON m.user_id = s.user_id JOIN organizations o ON o.id = m.organization_id
     WHERE m.organization_id = $1 AND NOT EXISTS (
       SELECT FROM memberships em JOIN organizations e ON e.id = em.organization_id
       WHERE em.user_id = s.user_id AND e.billing_account_id <> o.billing_account_id
         AND NOT e.is_personal AND e.deleted_at IS NULL) AND ${live}`,
    [organizationId, now, seenAfter, limit, id ?? null],
  )
}

/** Never moves the time back, so that late reports of use do no harm. */
export async function touchSession(sql: Sql, id: string, seenAt: Date): Promise<void> {
  await sql.query("UPDATE sessions SET last_seen_at = GREATEST(last_seen_at, $2) WHERE id = $1", [id, seenAt])
}

/** Returns whether this call ended it. */
export async function revokeSession(sql: Sql, id: string, revokedAt: Date): Promise<boolean> {
  const ended = await sql.query(
    "UPDATE sessions SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id",
    [id, revokedAt],
  )
  return ended.length > 0
}

/** After a change of password, for example. Returns those it ended. */
export function revokeSessionsOfUser(sql: Sql, userId: string, revokedAt: Date): Promise<Session[]> {
  return Session.all(
    sql,
    "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL RETURNING *",
    [userId, revokedAt],
  )
}

/** Removes at most `limit` sessions that ended before `before`, and returns how many. */
export async function purgeSessions(sql: Sql, before: Date, limit: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
     RETURNING id`,
    [before, limit],
  )
  return removed.length
}

export async function insertOneTimeLink(sql: Sql, link: OneTimeLink): Promise<void> {
  await OneTimeLink.insert(sql, link)
}

/** Returns whose link it is, once; null when it is unknown, expired or used. */
export async function useOneTimeLink(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<string | null> {
  const link = await OneTimeLink.first(
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
  return await text.all(
    sql,
    `SELECT m.organization_id FROM memberships m JOIN organizations o ON o.id = m.organization_id
     WHERE m.user_id = $1 AND o.deleted_at IS NULL ORDER BY m.organization_id LIMIT $2`,
    [userId, limit],
  )
}

/** Where a user's sessions began. */
export async function listSessionAddresses(sql: Sql, userId: string): Promise<string[]> {
  return await text.all(
    sql,
    "SELECT DISTINCT ip FROM sessions WHERE user_id = $1 AND ip IS NOT NULL LIMIT 1000",
    [userId],
  )
}
