/** Members of an organization: their roles, and their leaving. */
import { type Principal, type Role, type Membership, roles } from "../contract/access.ts"
import type { CallOf, Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Member as WireMember, memberTable } from "../contract/platform/members.ts"
import { revokeKeysOfMember } from "../store/keys.ts"
import {
  type Member,
  countMembers,
  deleteMembership,
  findMembership,
  lockOrganization,
  pageMembers,
  updateMembership,
} from "../store/organizations.ts"
import type { Sql } from "../store/sql.ts"
import { findUser } from "../store/users.ts"
import { type ControlDeps, acting, change, notFound, toList } from "./audited-change.ts"
import { toWire } from "./to-wire.ts"

export function memberHandlers(deps: ControlDeps): Handlers<typeof memberTable> {
  return {
    async listMembers(call) {
      const { organizationId } = acting(call)
      return toList(await pageMembers(deps.database, organizationId, call.query), toMember)
    },
    updateMember: async (call) => await update(deps, call),
    removeMember: async (call) => await remove(deps, call),
  }
}

async function update(
  deps: ControlDeps,
  call: CallOf<(typeof memberTable)["updateMember"]>,
): Promise<WireMember> {
  const { principal, membership, organizationId } = acting(call)
  const { role } = call.body
  return await change(deps, call, async ({ sql, now, audit, invalidate }) => {
    await lockOrganization(sql, organizationId)
    const actorRole = await roleNow(sql, principal, membership)
    const before = await readMember(sql, organizationId, call.params.user_id)
    checkRank(actorRole, before.role, role)
    if (before.role === "primary_owner" && role !== "primary_owner") await checkNotLast(sql, organizationId)
    const after = await updateMembership(sql, organizationId, before.userId, { role, updatedAt: now })
    if (!after) throw notFound("member")
    await audit(
      "member.update",
      { organizationId, id: before.userId },
      { before: { role: before.role }, after: { role } },
    )
    invalidate({ table: "memberships", id: organizationId })
    return toMember({ ...before, ...after })
  })
}

async function remove(deps: ControlDeps, call: CallOf<(typeof memberTable)["removeMember"]>): Promise<void> {
  const { principal, membership, organizationId } = acting(call)
  await change(deps, call, async ({ sql, now, audit, invalidate }) => {
    await lockOrganization(sql, organizationId)
    const actorRole = await roleNow(sql, principal, membership)
    const before = await readMember(sql, organizationId, call.params.user_id)
    checkRank(actorRole, before.role)
    if (before.role === "primary_owner") await checkNotLast(sql, organizationId)
    await deleteMembership(sql, organizationId, before.userId)
    const ended = await revokeKeysOfMember(sql, organizationId, before.userId, now)
    await audit(
      "member.remove",
      { organizationId, id: before.userId },
      { before: { ...toMember(before), api_keys: ended.map(({ id }) => id) } },
    )
    invalidate({ table: "memberships", id: organizationId })
    for (const { id } of ended) invalidate({ table: "api_keys", id })
  })
}

/**
 * The caller's role as it is under the lock: another owner may have changed it since the request was let in. An
 * organization's key stays what it is.
 */
export async function roleNow(sql: Sql, principal: Principal, membership: Membership): Promise<Role> {
  if (principal.userId === null) return membership.role
  const current = await findMembership(sql, membership.organizationId, principal.userId)
  if (!current) throw notFound("organization")
  if (current.role === "member" && membership.role !== "member")
    throw new Fault("permission_denied", "Cannot perform the operation: an organization owner is needed")
  return current.role
}

/** A caller cannot grant, change or remove a role above its own. */
export function checkRank(actor: Role, ...concerned: readonly Role[]): void {
  const above = concerned.find((role) => roles.indexOf(role) < roles.indexOf(actor))
  if (above)
    throw new Fault(
      "permission_denied",
      `Cannot perform the operation: it concerns the role ${above}, which is above the caller's own`,
    )
}

async function checkNotLast(sql: Sql, organizationId: string): Promise<void> {
  const { primaryOwners } = await countMembers(sql, organizationId)
  if (primaryOwners > 1) return
  throw new Fault(
    "conflict",
    "Cannot take the role away: this is the last primary owner; make another member primary owner first",
  )
}

async function readMember(sql: Sql, organizationId: string, userId: string): Promise<Member> {
  const membership = await findMembership(sql, organizationId, userId)
  const user = membership && (await findUser(sql, userId))
  if (!membership || !user) throw notFound("member")
  return { ...membership, email: user.email, name: user.name }
}

const toMember = (member: Member): WireMember =>
  toWire(member, "userId", "email", "name", "role", "createdAt", "updatedAt")
