/** Members of an organization: their roles, and their leaving. */
import { type Principal, type Role, type Membership, isOwner, roles } from "../contract/access.ts"
import type { Handlers } from "../contract/endpoint.ts"
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
import { type ControlDeps, acting, change, found, notFound, toList } from "./audited-change.ts"
import { toWire } from "./to-wire.ts"

export function memberHandlers(deps: ControlDeps): Handlers<typeof memberTable> {
  return {
    async listMembers(call) {
      const { organizationId } = acting(call)
      return toList(await pageMembers(deps.database, organizationId, call.query), toMember)
    },
    async updateMember(call) {
      const { role } = call.body
      return await change(deps, call, async ({ sql, now, audit, invalidate }) => {
        const before = await lockMember(sql, call, role)
        const { organizationId, userId } = before
        const changes = { role, updatedAt: now }
        const after = found(await updateMembership(sql, organizationId, userId, changes), "member")
        const views = { before: { role: before.role }, after: { role } }
        await audit("member.update", { organizationId, id: userId }, views)
        invalidate({ table: "memberships", id: organizationId })
        return toMember({ ...before, ...after })
      })
    },
    removeMember: async (call) =>
      await change(deps, call, async ({ sql, now, audit, invalidate }) => {
        const before = await lockMember(sql, call, null)
        const { organizationId, userId } = before
        await deleteMembership(sql, organizationId, userId)
        const ended = await revokeKeysOfMember(sql, organizationId, userId, now)
        const shown = { ...toMember(before), api_keys: ended.map(({ id }) => id) }
        await audit("member.remove", { organizationId, id: userId }, { before: shown })
        invalidate({ table: "memberships", id: organizationId })
        for (const { id } of ended) invalidate({ table: "api_keys", id })
      }),
  }
}

type MemberCall = Parameters<typeof acting>[0] & { readonly params: { readonly user_id: string } }

/** The member as it is under the lock, whose role the caller may change to this one; null takes it away. */
async function lockMember(sql: Sql, call: MemberCall, role: Role | null): Promise<Member> {
  const { principal, membership, organizationId } = acting(call)
  await lockOrganization(sql, organizationId)
  const actorRole = await roleNow(sql, principal, membership)
  const member = await readMember(sql, organizationId, call.params.user_id)
  checkRank(actorRole, member.role, ...(role === null ? [] : [role]))
  if (member.role === "primary_owner" && role !== "primary_owner") await checkNotLast(sql, organizationId)
  return member
}

/**
 * The caller's role as it is under the lock: another owner may have changed it since the request was let in. An
 * organization's key stays what it is.
 */
export async function roleNow(sql: Sql, principal: Principal, membership: Membership): Promise<Role> {
  if (principal.userId === null) return membership.role
  const current = await findMembership(sql, membership.organizationId, principal.userId)
  if (!current) throw notFound("organization")
  if (!isOwner(current.role) && isOwner(membership.role))
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
