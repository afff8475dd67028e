/** Lists sessions and ends them, for their users and for owners; whether an organization requires single sign-on. */
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { OwnSession, SingleSignOnPolicy } from "../contract/platform/sessions.ts"
import type { PlatformTable } from "../contract/table.ts"
import { type Organization, lockOrganization } from "../store/organizations.ts"
import { type Session, listMemberSessions, listSessionsOfUser, revokeSession } from "../store/sessions.ts"
import { acting, change, notFound } from "./audited-change.ts"
import { checkRank, roleNow } from "./members.ts"
import { changeOrganization, readOrganization } from "./organizations.ts"
import { sessionIdleMs } from "./principals.ts"
import { type SessionDeps, tellOrganizations } from "./sessions.ts"
import { toWire } from "./to-wire.ts"

type Names =
  | "listSessions"
  | "endSession"
  | "listMemberSessions"
  | "endMemberSession"
  | "getSingleSignOnPolicy"
  | "putSingleSignOnPolicy"

const listedMax = 200

export function sessionListHandlers(deps: SessionDeps): Pick<Handlers<PlatformTable>, Names> {
  const { database, clock } = deps
  const live = () => {
    const nowMs = clock.nowMs()
    return { now: new Date(nowMs), seenAfter: new Date(nowMs - sessionIdleMs), limit: listedMax }
  }
  return {
    async listSessions({ principal }) {
      const sessions = await listSessionsOfUser(database, principal?.userId ?? "", live())
      return sessions.map((session) => ({ ...toSession(session), current: session.id === principal?.id }))
    },
    async endSession(call) {
      const userId = call.principal?.userId ?? ""
      const id = call.params.session_id
      await change(deps, call, async (scope) => {
        const own = await listSessionsOfUser(scope.sql, userId, { ...live(), id })
        if (own.length === 0 || !(await revokeSession(scope.sql, id, scope.now))) throw notFound("session")
        await tellOrganizations(scope, userId, { action: "session.delete", id })
        scope.invalidate({ table: "sessions", id })
      })
    },
    async listMemberSessions(call) {
      const { organizationId } = acting(call)
      const sessions = await listMemberSessions(database, organizationId, live())
      return sessions.map(({ email, name, ...session }) => ({
        ...toSession(session),
        user: { id: session.userId, email, name },
      }))
    },
    async endMemberSession(call) {
      const { principal, membership, organizationId } = acting(call)
      const id = call.params.session_id
      await change(deps, call, async ({ sql, now, audit, invalidate }) => {
        await lockOrganization(sql, organizationId)
        const actorRole = await roleNow(sql, principal, membership)
        const [session] = await listMemberSessions(sql, organizationId, { ...live(), id })
        if (!session) throw notFound("session")
        checkRank(actorRole, session.role)
        if (!(await revokeSession(sql, id, now))) throw notFound("session")
        const before = { user_id: session.userId, email: session.email }
        await audit("session.delete", { organizationId, id }, { before })
        invalidate({ table: "sessions", id })
      })
    },
    async getSingleSignOnPolicy(call) {
      return toPolicy(await readOrganization(database, acting(call).organizationId))
    },
    async putSingleSignOnPolicy(call) {
      const { principal, organizationId } = acting(call)
      const { required } = call.body
      // Keeps callers from locking themselves out.
      if (required && principal.signedInBy !== "sso")
        throw new Fault(
          "conflict",
          "Cannot require single sign-on: this session began without it; sign in with it first",
        )
      return await change(deps, call, async (scope) => {
        const fields = { ssoRequired: required }
        return toPolicy(await changeOrganization(scope, organizationId, { fields, view: toPolicy }))
      })
    },
  }
}

export const toPolicy = (organization: Organization): SingleSignOnPolicy => ({
  required: organization.ssoRequired,
  email_domains: [...organization.ssoEmailDomains],
  groups: [...organization.ssoGroups],
  role: organization.ssoRole,
})

const toSession = (session: Session): Omit<OwnSession, "current"> =>
  toWire(session, "id", "method", "ip", "userAgent", "createdAt", "lastSeenAt", "expiresAt")
