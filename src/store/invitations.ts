/** Invitations to an organization: open until accepted, revoked or expired; one open at a time for each address. */
import { roles } from "../contract/access.ts"
import { column, type NewRowOf, part, row, type RowOf, run, table } from "./rows.ts"
import type { Sql } from "./sql.ts"

const Invitation = table("invitations", {
  id: column.text,
  organizationId: column.text,
  email: column.text,
  role: column.oneOf(...roles),
  /** SHA-256 of the token that accepts it. */
  tokenHash: column.bytes,
  invitedBy: column.text,
  createdAt: column.timestamp,
  expiresAt: column.timestamp,
  acceptedAt: column.timestamp.nullable(),
  acceptedBy: column.text.nullable(),
  revokedAt: column.timestamp.nullable(),
})
export type Invitation = RowOf<typeof Invitation>

/** An invitation with who sent it. */
const SentInvitation = row({
  ...Invitation.columns,
  inviterEmail: column.text,
  inviterName: column.text.nullable(),
})
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
  await run(sql)`UPDATE invitations SET revoked_at = ${createdAt}
    WHERE organization_id = ${organizationId} AND lower(email) = lower(${email}) AND ${part(isOpen)}
      AND expires_at <= ${createdAt}`
  const onConflict = `ON CONFLICT (organization_id, lower(email)) WHERE ${isOpen} DO NOTHING`
  return Invitation.insertIfNew(sql, { ...invitation }, onConflict)
}

/** Also answers one that is no longer open. */
export const findInvitation = (sql: Sql, organizationId: string, id: string) =>
  SentInvitation.first(sql)`${part(withInviter)}
    WHERE i.organization_id = ${organizationId} AND i.id = ${id}`

/** Also answers one that is no longer open. */
export const findInvitationByTokenHash = (sql: Sql, tokenHash: Uint8Array) =>
  Invitation.find(sql)`token_hash = ${tokenHash}`

const InvitationDetails = row({ ...SentInvitation.columns, organizationName: column.text })

/** With the names that an invited person needs to decide; also returns one that is no longer open. */
export const findInvitationDetails = (sql: Sql, tokenHash: Uint8Array) =>
  InvitationDetails.first(sql)`SELECT i.*, u.email AS inviter_email, u.name AS inviter_name,
      o.name AS organization_name
    FROM invitations i JOIN users u ON u.id = i.invited_by JOIN organizations o ON o.id = i.organization_id
    WHERE i.token_hash = ${tokenHash} AND o.deleted_at IS NULL`

/** Newest first. */
export const listPendingInvitations = (sql: Sql, organizationId: string, now: Date) =>
  SentInvitation.all(sql)`${part(withInviter)}
    WHERE i.organization_id = ${organizationId} AND ${part(isOpen)} AND i.expires_at > ${now}
    ORDER BY i.id DESC`

/** Replaces token and expiry of an open invitation, expired or not; null when it is not open. */
export const renewInvitation = (
  sql: Sql,
  organizationId: string,
  id: string,
  renewal: Pick<Invitation, "tokenHash" | "expiresAt">,
) =>
  Invitation.first(sql)`UPDATE invitations SET token_hash = ${renewal.tokenHash},
      expires_at = ${renewal.expiresAt}
    WHERE organization_id = ${organizationId} AND id = ${id} AND ${part(isOpen)}
    RETURNING *`

/** Returns null when it is not open or has expired: of two who accept at once, one does. */
export const acceptInvitation = (sql: Sql, id: string, userId: string, now: Date) =>
  Invitation.first(sql)`UPDATE invitations SET accepted_at = ${now}, accepted_by = ${userId}
    WHERE id = ${id} AND ${part(isOpen)} AND expires_at > ${now}
    RETURNING *`

/** Returns null when it is not open. */
export const revokeInvitation = (sql: Sql, organizationId: string, id: string, revokedAt: Date) =>
  Invitation.first(sql)`UPDATE invitations SET revoked_at = ${revokedAt}
    WHERE organization_id = ${organizationId} AND id = ${id} AND ${part(isOpen)} RETURNING *`
