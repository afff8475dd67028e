/** Invitations to an organization: open until accepted, revoked or expired; one open at a time for each address. */
import { roles } from "../contract/access.ts"
import { type NewRowOf, type RowOf, bytes, oneOf, row, table, text, timestamp } from "./rows.ts"
import type { Sql } from "./sql.ts"

const Invitation = table("invitations", {
  id: text,
  organizationId: text,
  email: text,
  role: oneOf(...roles),
  /** SHA-256 of the token that accepts it. */
  tokenHash: bytes,
  invitedBy: text,
  createdAt: timestamp,
  expiresAt: timestamp,
  acceptedAt: timestamp.nullable(),
  acceptedBy: text.nullable(),
  revokedAt: timestamp.nullable(),
})
export type Invitation = RowOf<typeof Invitation>

/** An invitation with who sent it. */
const SentInvitation = row({ ...Invitation.columns, inviterEmail: text, inviterName: text.nullable() })
export type SentInvitation = RowOf<typeof SentInvitation>

const withInviter = `
  SELECT i.*, u.email AS inviter_email, u.name AS inviter_name
  FROM invitations i JOIN users u ON u.id = i.invited_by`
const isOpen = "accepted_at IS NULL AND revoked_at IS NULL"

/** Returns null when an invitation for the address is open. An expired one is replaced. */
export async function insertInvitation(
  sql: Sql,
  invitation: NewRowOf<typeof Invitation>,
): Promise<Invitation | null> {
  const { organizationId, email, createdAt } = invitation
  await sql.query(
    `UPDATE invitations SET revoked_at = $3
     WHERE organization_id = $1 AND lower(email) = lower($2) AND ${isOpen} AND expires_at <= $3`,
    [organizationId, email, createdAt],
  )
  const onConflict = `ON CONFLICT (organization_id, lower(email)) WHERE ${isOpen} DO NOTHING`
  return Invitation.insertIfNew(sql, { ...invitation }, onConflict)
}

/** Also answers one that is no longer open. */
export function findInvitation(sql: Sql, organizationId: string, id: string): Promise<SentInvitation | null> {
  return SentInvitation.first(sql, `${withInviter} WHERE i.organization_id = $1 AND i.id = $2`, [
    organizationId,
    id,
  ])
}

/** Also answers one that is no longer open. */
export function findInvitationByTokenHash(sql: Sql, tokenHash: Uint8Array): Promise<Invitation | null> {
  return Invitation.find(sql, "token_hash = $1", [tokenHash])
}

const InvitationDetails = row({ ...SentInvitation.columns, organizationName: text })

/** With the names that an invited person needs to decide; also returns one that is no longer open. */
export function findInvitationDetails(
  sql: Sql,
  tokenHash: Uint8Array,
): Promise<RowOf<typeof InvitationDetails> | null> {
  return InvitationDetails.first(
    sql,
    `SELECT i.*, u.email AS inviter_email, u.name AS inviter_name, o.name AS organization_name
     FROM invitations i JOIN users u ON u.id = i.invited_by JOIN organizations o ON o.id = i.organization_id
     WHERE i.token_hash = $1 AND o.deleted_at IS NULL`,
    [tokenHash],
  )
}

/** Newest first. */
export function listPendingInvitations(
  sql: Sql,
  organizationId: string,
  now: Date,
): Promise<SentInvitation[]> {
  return SentInvitation.all(
    sql,
    `${withInviter} WHERE i.organization_id = $1 AND ${isOpen} AND i.expires_at > $2 ORDER BY i.id DESC`,
    [organizationId, now],
  )
}

/** Replaces token and expiry of an open invitation, expired or not; null when it is not open. */
export function renewInvitation(
  sql: Sql,
  organizationId: string,
  id: string,
  renewal: Pick<Invitation, "tokenHash" | "expiresAt">,
): Promise<Invitation | null> {
  return Invitation.first(
    sql,
    `UPDATE invitations SET token_hash = $3, expires_at = $4 WHERE organization_id = $1 AND id = $2 AND ${isOpen}
     RETURNING *`,
    [organizationId, id, renewal.tokenHash, renewal.expiresAt],
  )
}

/** Returns null when it is not open or has expired: of two who accept at once, one does. */
export function acceptInvitation(
  sql: Sql,
  id: string,
  userId: string,
  now: Date,
): Promise<Invitation | null> {
  return Invitation.first(
    sql,
    `UPDATE invitations SET accepted_at = $3, accepted_by = $2 WHERE id = $1 AND ${isOpen} AND expires_at > $3
     RETURNING *`,
    [id, userId, now],
  )
}

/** Returns null when it is not open. */
export function revokeInvitation(
  sql: Sql,
  organizationId: string,
  id: string,
  revokedAt: Date,
): Promise<Invitation | null> {
  return Invitation.first(
    sql,
    `UPDATE invitations SET revoked_at = $3 WHERE organization_id = $1 AND id = $2 AND ${isOpen} RETURNING *`,
    [organizationId, id, revokedAt],
  )
}
