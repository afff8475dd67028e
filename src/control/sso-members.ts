/** Who signs in with single sign-on becomes a user and a member where an organization takes the address or group. */
import type { Role } from "../contract/access.ts"
import type { Call } from "../contract/endpoint.ts"
import { findJoinableOrganizations, insertMembership } from "../store/organizations.ts"
import type { Sql } from "../store/sql.ts"
import { endOneTimeLinks, revokeSessionsOfUser } from "../store/sessions.ts"
import { findUserByIdentity, insertSsoIdentity } from "../store/sso-identities.ts"
import { type User, findUserByEmail, insertUser, updateUser } from "../store/users.ts"
import { change } from "./change.ts"
import { type SessionParts, becoming, tellOrganizations } from "./sessions.ts"
import type { SsoIdentity } from "./sso-provider.ts"

/** Only a verified address says which domain someone belongs to. */
function domainOf({ email, emailVerified }: SsoIdentity): string | null {
  return emailVerified && email !== null ? email.slice(email.lastIndexOf("@") + 1).toLowerCase() : null
}

interface Joining {
  readonly id: string
  readonly role: Role
}

async function joinable(sql: Sql, identity: SsoIdentity): Promise<Joining[]> {
  const organizations = await findJoinableOrganizations(sql, domainOf(identity), identity.groups)
  return organizations.map(({ id, ssoRole }) => ({ id, role: ssoRole }))
}

/** The user who has the address, or a new one; null when no organization takes the address or group. */
export async function bindSsoUser(
  parts: SessionParts,
  identity: SsoIdentity,
  email: string,
  call: Pick<Call, "request">,
): Promise<User | null> {
  const user =
    (await findUserByEmail(parts.database, email)) ??
    (await createSsoUser(parts, identity, email)) ??
    // Another request may have made the user since.
    (await findUserByEmail(parts.database, email))
  return user && (await bind(parts, user, identity, call))
}

async function createSsoUser(
  parts: SessionParts,
  identity: SsoIdentity,
  email: string,
): Promise<User | null> {
  return await parts.database.transaction(async (sql) => {
    if ((await joinable(sql, identity)).length === 0) return null
    const now = new Date(parts.clock.nowMs())
    return await insertUser(sql, {
      id: parts.ids.next("usr"),
      email,
      name: identity.name,
      createdAt: now,
      updatedAt: now,
    })
  })
}

/**
 * Whoever made the user need not be the person whom the provider means: anyone can invite any address and accept the
 * invitation. So what the user could sign in with until now ends.
 */
async function bind(
  parts: SessionParts,
  user: User,
  { issuer, subject }: SsoIdentity,
  call: Pick<Call, "request">,
): Promise<User | null> {
  return await change(parts, becoming(user, parts.ids.next("ses"), call), async (scope) => {
    const { sql, now, touched } = scope
    const bound = await insertSsoIdentity(sql, { issuer, subject, userId: user.id, createdAt: now })
    // Another request was first.
    if (!bound) return await findUserByIdentity(sql, issuer, subject)
    const updated = await updateUser(sql, user.id, { passwordHash: null }, now)
    await endOneTimeLinks(sql, user.id)
    for (const { id } of await revokeSessionsOfUser(sql, user.id, now)) touched({ table: "sessions", id })
    await tellOrganizations(scope, user.id, "user.bind_sso", { type: "user", id: user.id })
    return updated
  })
}

/** Joins every organization that takes the user and that the user is no member of; nobody is removed or changed. */
export async function joinBySso(
  parts: SessionParts,
  user: User,
  identity: SsoIdentity,
  call: Pick<Call, "request">,
): Promise<void> {
  const wanted = await joinable(parts.database, identity)
  if (wanted.length === 0) return
  await change(parts, becoming(user, parts.ids.next("ses"), call), async ({ sql, now, audit, touched }) => {
    for (const { id: organizationId, role } of wanted) {
      const membership = { organizationId, userId: user.id, role, createdAt: now, updatedAt: now }
      if (!(await insertMembership(sql, membership))) continue
      const resource = { type: "member", id: user.id }
      const after = { email: user.email, role, by: "single sign-on" }
      await audit({ organizationId, action: "member.join", resource, before: null, after })
      touched({ table: "memberships", id: organizationId })
    }
  })
}
