/** Invitations: sent, sent again, taken back, and accepted by a user or by someone who becomes one. */
import { newSecret } from "../base/ids.ts"
import type { Principal, Role } from "../contract/access.ts"
import type { CallOf, Handlers, Handle } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type {
  InvitationDetails,
  Invitation as WireInvitation,
  invitationTable,
} from "../contract/platform/members.ts"
import {
  type Invitation,
  type SentInvitation,
  acceptInvitation,
  findInvitation,
  findInvitationByTokenHash,
  findInvitationDetails,
  insertInvitation,
  listPendingInvitations,
  renewInvitation,
  revokeInvitation,
} from "../store/invitations.ts"
import { insertMembership, lockOrganization } from "../store/organizations.ts"
import { column, runCounted } from "../store/rows.ts"
import type { Sql } from "../store/sql.ts"
import { type User, findUser, findUserByEmail, insertUser } from "../store/users.ts"
import { hashSecret } from "./principals.ts"
import { acting, change, notFound } from "./audited-change.ts"
import { creatorOf } from "./keys.ts"
import { checkRank, roleNow } from "./members.ts"
import { toWire } from "./to-wire.ts"
import { hashPassword } from "./passwords.ts"
import { becoming, giveCookie, type SessionDeps, startSession, toPerson } from "./sessions.ts"

type Table = typeof invitationTable

interface InvitationDeps extends SessionDeps {
  /** With single sign-on a new user needs no password. */
  readonly singleSignOn: boolean
}

const lifetimeMs = 7 * 24 * 3_600_000

export function invitationHandlers(deps: InvitationDeps): Handlers<Table> {
  return {
    async listInvitations(call) {
      const { organizationId } = acting(call)
      const now = new Date(deps.clock.nowMs())
      return (await listPendingInvitations(deps.database, organizationId, now)).map(toInvitation)
    },
    createInvitation: async (call) => await invite(deps, call),
    revokeInvitation: async (call) => await takeBack(deps, call),
    resendInvitation: async (call) => await sendAgain(deps, call),
    describeInvitation: async (call) => await describeByToken(deps, call),
    acceptInvitation: async (call) => await join(deps, call),
  }
}

const invite: Handle<InvitationDeps, Table["createInvitation"]> = async (deps, call) => {
  const { principal, membership, organizationId } = acting(call)
  const { email, role } = call.body
  const id = deps.ids.next("inv")
  const token = newSecret()
  return await change(deps, call, async ({ sql, now, audit }) => {
    await lockOrganization(sql, organizationId)
    checkRank(await roleNow(sql, principal, membership), role)
    await checkNotMember(sql, organizationId, email)
    const made = await insertInvitation(sql, {
      id,
      organizationId,
      email,
      role,
      tokenHash: hashSecret(token),
      invitedBy: await inviterOf(sql, principal, organizationId),
      createdAt: now,
      expiresAt: new Date(now.getTime() + lifetimeMs),
    })
    if (!made)
      throw new Fault("conflict", `Cannot invite ${email}: an invitation is open; send that one again`)
    const invitation = toInvitation(await readInvitation(sql, organizationId, id))
    await audit("invitation.create", { organizationId, id }, { after: invitation })
    return { ...invitation, accept_token: token }
  })
}

const takeBack: Handle<InvitationDeps, Table["revokeInvitation"]> = async (deps, call) => {
  const { principal, membership, organizationId } = acting(call)
  await change(deps, call, async ({ sql, now, audit }) => {
    const before = await readInvitation(sql, organizationId, call.params.invitation_id)
    checkRank(await roleNow(sql, principal, membership), before.role)
    if (!(await revokeInvitation(sql, organizationId, before.id, now))) throw notFound("invitation")
    await audit("invitation.revoke", { organizationId, id: before.id }, { before: toInvitation(before) })
  })
}

const sendAgain: Handle<InvitationDeps, Table["resendInvitation"]> = async (deps, call) => {
  const { principal, membership, organizationId } = acting(call)
  const token = newSecret()
  return await change(deps, call, async ({ sql, now, audit }) => {
    const before = await readInvitation(sql, organizationId, call.params.invitation_id)
    checkRank(await roleNow(sql, principal, membership), before.role)
    const renewal = { tokenHash: hashSecret(token), expiresAt: new Date(now.getTime() + lifetimeMs) }
    const renewed = await renewInvitation(sql, organizationId, before.id, renewal)
    if (!renewed) throw notFound("invitation")
    await audit(
      "invitation.resend",
      { organizationId, id: before.id },
      {
        before: { expires_at: before.expiresAt.toISOString() },
        after: { expires_at: renewed.expiresAt.toISOString() },
      },
    )
    return { ...toInvitation({ ...before, ...renewed }), accept_token: token }
  })
}

const describeByToken: Handle<InvitationDeps, Table["describeInvitation"]> = async (
  { database, clock, limits },
  { body, request },
) => {
  await limits.countAttempt(request.ip)
  const invitation = await findInvitationDetails(database, hashSecret(body.token))
  if (!invitation) throw unknownToken()
  return {
    state: stateOf(invitation, clock.nowMs()),
    ...toWire(invitation, "organizationName", "email", "role", "expiresAt"),
    invited_by: { email: invitation.inviterEmail, name: invitation.inviterName },
    user_exists: (await findUserByEmail(database, invitation.email)) !== null,
  }
}

function stateOf(
  { acceptedAt, revokedAt, expiresAt }: Pick<Invitation, "acceptedAt" | "revokedAt" | "expiresAt">,
  nowMs: number,
): InvitationDetails["state"] {
  if (acceptedAt !== null) return "accepted"
  if (revokedAt !== null) return "revoked"
  return expiresAt.getTime() <= nowMs ? "expired" : "open"
}

const join: Handle<InvitationDeps, Table["acceptInvitation"]> = async (deps, call) => {
  const { principal, body } = call
  if (principal && principal.kind !== "session")
    throw new Fault(
      "principal_not_accepted",
      "Cannot accept the invitation: use a session, or no credentials to become a new user",
    )
  await deps.limits.countAttempt(call.request.ip)
  const found = await findOpen(deps, body.token)
  // Hashing is slow, so it happens before the transaction.
  const passwordHash = principal ? null : await newPasswordHash(deps, call, found)
  const fresh = { id: deps.ids.next("usr"), email: found.email, name: body.name ?? null, passwordHash }
  const sessionId = deps.ids.next("ses")
  // A new user is who acts, although the call came without credentials.
  const caller = principal ? call : { ...becoming(fresh, sessionId, call), idempotency: call.idempotency }
  const accepted = await change(deps, caller, async ({ sql, now, audit, invalidate }) => {
    const user = principal ? await sessionUser(sql, principal, found) : await newUser(sql, fresh, now)
    const { organizationId, role } = await accept(sql, found, { userId: user.id, now })
    await audit(
      "invitation.accept",
      { organizationId, id: found.id },
      { after: { user_id: user.id, email: user.email, role } },
    )
    invalidate({ table: "memberships", id: organizationId })
    const session = principal
      ? null
      : await startSession(deps, sql, {
          session: { id: sessionId, userId: user.id, method: "invitation" },
          request: call.request,
        })
    return { organization_id: organizationId, role, user: toPerson(user), session }
  })
  if (accepted.session) giveCookie(deps, call, accepted.session)
  return accepted
}

async function findOpen({ database, clock }: InvitationDeps, token: string): Promise<Invitation> {
  const found = await findInvitationByTokenHash(database, hashSecret(token))
  if (!found) throw unknownToken()
  if (stateOf(found, clock.nowMs()) !== "open") throw closed()
  return found
}

const unknownToken = (): Fault =>
  new Fault("not_found", "Cannot find the invitation: the token is unknown or was replaced")

const closed = (): Fault =>
  new Fault("conflict", "Cannot accept the invitation: it was accepted, taken back or has expired")

async function newPasswordHash(
  { database, singleSignOn }: InvitationDeps,
  { body: { password }, request }: Pick<CallOf<Table["acceptInvitation"]>, "body" | "request">,
  { email }: Invitation,
): Promise<string | null> {
  if (await findUserByEmail(database, email)) throw hasUser()
  if (password !== undefined) return await hashPassword(password, request.ip)
  if (singleSignOn) return null
  throw new Fault("invalid_body", "Cannot accept the invitation: a new user needs a password", {
    details: [{ path: "password", message: "needed for a new user" }],
  })
}

const hasUser = (): Fault =>
  new Fault(
    "conflict",
    "Cannot make a new user: the address has one; sign in, then accept the invitation with that session",
  )

async function newUser(
  sql: Sql,
  person: Pick<User, "id" | "email" | "name" | "passwordHash">,
  now: Date,
): Promise<User> {
  const user = await insertUser(sql, { ...person, createdAt: now, updatedAt: now })
  if (!user) throw hasUser()
  return user
}

async function sessionUser(sql: Sql, { userId }: Principal, { email }: Invitation): Promise<User> {
  const user = userId === null ? null : await findUser(sql, userId)
  if (!user || user.email.toLowerCase() !== email.toLowerCase())
    throw new Fault("permission_denied", "Cannot accept the invitation: it is for another email address")
  return user
}

/** Of two who accept at once, one does. */
async function accept(
  sql: Sql,
  { id, organizationId }: Invitation,
  { userId, now }: { userId: string; now: Date },
): Promise<{ readonly organizationId: string; readonly role: Role }> {
  const organization = await lockOrganization(sql, organizationId)
  if (!organization || organization.deletedAt !== null) throw closed()
  const accepted = await acceptInvitation(sql, id, userId, now)
  if (!accepted) throw closed()
  const { role } = accepted
  const joined = await insertMembership(sql, {
    organizationId,
    userId,
    role,
    createdAt: now,
    updatedAt: now,
  })
  if (!joined) throw new Fault("conflict", "Cannot accept the invitation: the user is a member already")
  return { organizationId, role }
}

async function checkNotMember(sql: Sql, organizationId: string, email: string): Promise<void> {
  const member = await runCounted(sql)`SELECT FROM memberships m JOIN users u ON u.id = m.user_id
    WHERE m.organization_id = ${organizationId} AND lower(u.email) = lower(${email})`
  if (member) throw new Fault("conflict", `Cannot invite ${email}: they are a member already`)
}

/** A person stands behind every invitation: of a key that the installation made, the first primary owner. */
async function inviterOf(sql: Sql, principal: Principal, organizationId: string): Promise<string> {
  const creator = await creatorOf(sql, principal)
  if (creator !== null) return creator
  const owner = await column.text.first(sql)`SELECT user_id FROM memberships
    WHERE organization_id = ${organizationId} AND role = 'primary_owner'
    ORDER BY created_at, user_id LIMIT 1`
  if (owner !== null) return owner
  throw new Fault("conflict", "Cannot invite anyone: the organization has no primary owner to invite them")
}

async function readInvitation(sql: Sql, organizationId: string, id: string): Promise<SentInvitation> {
  const invitation = await findInvitation(sql, organizationId, id)
  if (!invitation || invitation.acceptedAt !== null || invitation.revokedAt !== null)
    throw notFound("invitation")
  return invitation
}

function toInvitation(invitation: SentInvitation): WireInvitation {
  return {
    ...toWire(invitation, "id", "email", "role", "createdAt", "expiresAt"),
    invited_by: { id: invitation.invitedBy, email: invitation.inviterEmail, name: invitation.inviterName },
  }
}
