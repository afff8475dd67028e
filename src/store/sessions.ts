/** Console sessions, and the links that begin one without a password. */
import { roles } from "../contract/access.ts"
import { sessionMethods } from "../contract/platform/sessions.ts"
import { column, fragment, type NewRowOf, row, type RowOf, run, runCounted, table } from "./rows.ts"
import type { Sql } from "./sql.ts"
import { findUser, type User } from "./users.ts"

const Session = table("sessions", {
  id: column.text,
  /** SHA-256 of the token. */
  tokenHash: column.bytes,
  userId: column.text,
  ip: column.text.nullable(),
  userAgent: column.text.nullable(),
  /** How it began; null where an earlier version began it. */
  method: column.oneOf(...sessionMethods).nullable(),
  createdAt: column.timestamp,
  lastSeenAt: column.timestamp,
  /** However busy the session is; idleness is the caller's to judge, by lastSeenAt. */
  expiresAt: column.timestamp,
  revokedAt: column.timestamp.nullable(),
})
export type Session = RowOf<typeof Session>

export type SessionMethod = (typeof sessionMethods)[number]

export interface SessionPrincipal {
  readonly session: Session
  readonly user: User
}

const OneTimeLink = table("one_time_links", {
  tokenHash: column.bytes,
  userId: column.text,
  /** Signs in by itself, or sets a new password. */
  purpose: column.oneOf("sign_in", "reset").withDefault(),
  createdAt: column.timestamp,
  expiresAt: column.timestamp,
})
export type OneTimeLink = RowOf<typeof OneTimeLink>

export const insertSession = (sql: Sql, session: NewRowOf<typeof Session>) =>
  Session.insert(sql, { ...session })

/** Also returns an expired or revoked one. */
export async function findSessionPrincipal(
  sql: Sql,
  tokenHash: Uint8Array,
): Promise<SessionPrincipal | null> {
  const session = await Session.find(sql)`token_hash = ${tokenHash}`
  const user = session === null ? null : await findUser(sql, session.userId)
  return session === null || user === null ? null : { session, user }
}

interface LiveSessions {
  readonly now: Date
  /** Those that were not seen since are idle for too long. */
  readonly seenAfter: Date
  readonly limit: number
  /** This one only. */
  readonly id?: string | null
}

const live = ({ now, seenAfter, limit, id = null }: LiveSessions) =>
  fragment`s.revoked_at IS NULL AND s.expires_at > ${now} AND s.last_seen_at > ${seenAfter}
    AND (${id}::text IS NULL OR s.id = ${id}) ORDER BY s.last_seen_at DESC, s.id DESC LIMIT ${limit}`

/** Those that are valid, the latest first. */
export const listSessionsOfUser = (sql: Sql, userId: string, asked: LiveSessions) =>
  Session.all(sql)`SELECT s.* FROM sessions s WHERE s.user_id = ${userId} AND ${live(asked)}`

const MemberSession = row({
  ...Session.columns,
  email: column.text,
  name: column.text.nullable(),
  role: column.oneOf(...roles),
})

/**
 * The same of all members, except of those who are also members elsewhere: their sessions are not this organization's
 * alone. Organizations of one billing account count as one, and personal ones do not count.
 */
export const listMemberSessions = (sql: Sql, organizationId: string, asked: LiveSessions) =>
  MemberSession.all(sql)`SELECT s.*, u.email, u.name, m.role FROM sessions s
    JOIN users u ON u.id = s.user_id
    JOIN memberships m ON m.user_id = s.user_id JOIN organizations o ON o.id = m.organization_id
    WHERE m.organization_id = ${organizationId} AND NOT EXISTS (
      SELECT FROM memberships em JOIN organizations e ON e.id = em.organization_id
      WHERE em.user_id = s.user_id AND e.billing_account_id <> o.billing_account_id
        AND NOT e.is_personal AND e.deleted_at IS NULL) AND ${live(asked)}`

/** Never moves the time back, so that late reports of use do no harm. */
export const touchSession = (sql: Sql, id: string, seenAt: Date) =>
  run(sql)`UPDATE sessions SET last_seen_at = GREATEST(last_seen_at, ${seenAt}) WHERE id = ${id}`

/** Returns whether this call ended it. */
export const revokeSession = async (sql: Sql, id: string, revokedAt: Date) =>
  (await runCounted(sql)`UPDATE sessions SET revoked_at = ${revokedAt}
    WHERE id = ${id} AND revoked_at IS NULL RETURNING id`) > 0

/** After a change of password, for example. Returns those it ended. */
export const revokeSessionsOfUser = (sql: Sql, userId: string, revokedAt: Date) =>
  Session.all(sql)`UPDATE sessions SET revoked_at = ${revokedAt}
    WHERE user_id = ${userId} AND revoked_at IS NULL RETURNING *`

/** Removes at most `limit` sessions that ended before `before`, and returns how many. */
export const purgeSessions = (sql: Sql, before: Date, limit: number) =>
  runCounted(sql)`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions
    WHERE expires_at < ${before} ORDER BY expires_at LIMIT ${limit})
    RETURNING id`

export async function insertOneTimeLink(sql: Sql, link: NewRowOf<typeof OneTimeLink>): Promise<void> {
  await OneTimeLink.insert(sql, link)
}

/** Null when it is unknown, expired or used. */
export const findOneTimeLink = (sql: Sql, tokenHash: Uint8Array, now: Date) =>
  OneTimeLink.find(sql)`token_hash = ${tokenHash} AND used_at IS NULL AND expires_at > ${now}`

/** Returns whose link it is, once; null when it is unknown, expired or used. */
export async function useOneTimeLink(sql: Sql, tokenHash: Uint8Array, now: Date): Promise<string | null> {
  const link = await OneTimeLink.first(sql)`UPDATE one_time_links SET used_at = ${now}
    WHERE token_hash = ${tokenHash} AND used_at IS NULL AND expires_at > ${now} RETURNING *`
  return link?.userId ?? null
}

/** Ends every unused link of the user, or those of one purpose: after a change of password, or a new link. */
export const endOneTimeLinks = (sql: Sql, userId: string, purpose: OneTimeLink["purpose"] | null = null) =>
  run(sql)`DELETE FROM one_time_links WHERE user_id = ${userId} AND used_at IS NULL
    AND (${purpose}::text IS NULL OR purpose = ${purpose})`

/** Of those that exist, in the order in which their audit logs may be locked. */
export const listOrganizationIdsOf = (sql: Sql, userId: string, limit: number) =>
  column.text.all(sql)`SELECT m.organization_id FROM memberships m
    JOIN organizations o ON o.id = m.organization_id
    WHERE m.user_id = ${userId} AND o.deleted_at IS NULL ORDER BY m.organization_id LIMIT ${limit}`

/** Where a user's sessions began. */
export const listSessionAddresses = (sql: Sql, userId: string) =>
  column.text.all(sql)`SELECT DISTINCT ip FROM sessions
    WHERE user_id = ${userId} AND ip IS NOT NULL LIMIT 1000`
