/** What an operator asks of the store, whether a server runs or not; and which organizations that may be about. */
import type { Catalog } from "../../base/catalog.ts"
import { type Membership, permissions, type RateLimit } from "../../contract/access.ts"
import type { Handlers, OutputOf, Handle } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { StoreOperatorTable, OperatorTable } from "../../contract/operator.ts"
import { deleteAlertsOf } from "../../store/alerts/rules.ts"
import { verifyAudit } from "../../store/audit.ts"
import { findBillingAccount } from "../../store/billing-accounts.ts"
import { deleteContentOf } from "../../store/content/content.ts"
import { deleteFilesOf } from "../../store/files/files.ts"
import { listVirtualModels } from "../../store/organization-snapshot.ts"
import { findOrganization, type Organization, deleteOrganization } from "../../store/organizations.ts"
import { deletePasskeys } from "../../store/passkeys.ts"
import { deleteSetsOf } from "../../store/question-sets/sets.ts"
import { column, row, type RowOf } from "../../store/rows.ts"
import { deleteSecondFactor } from "../../store/second-factors.ts"
import { endOneTimeLinks, revokeSessionsOfUser } from "../../store/sessions.ts"
import type { Sql } from "../../store/sql.ts"
import { type User, findUserByEmail, insertUser, findFirstUser, updateUser } from "../../store/users.ts"
import { acting, change, notFound, type ChangeScope, type ControlDeps } from "../audited-change.ts"
import type { ModelConnector } from "../connected-models.ts"
import { openAccount } from "../first-start.ts"
import { keyHandlers } from "../keys.ts"
import { accessRequestHandlers, decideModelAccess, toRequest } from "../models.ts"
import { changeOrganization, insertOwned } from "../organizations.ts"
import { given } from "../resource.ts"
import { toPolicy } from "../session-list.ts"
import { createOneTimeLink, tellOrganizations } from "../sessions.ts"
import { tagBudgetHandlers } from "../tag-budgets.ts"
import {
  lockAll,
  refuseUndecided,
  removeVirtualModel,
  requireRule,
  saveVirtualModel,
  toView,
} from "../virtual-models.ts"

export function storeOperatorHandlers(deps: OperatorDeps): Handlers<StoreOperatorTable> {
  const { listApiKeys, createApiKey, updateApiKey, deleteApiKey } = keyHandlers(deps)
  return {
    ...organizationOperatorHandlers(deps),
    ...userOperatorHandlers(deps),
    ...virtualModelOperatorHandlers(deps),
    ...tagBudgetHandlers(deps),
    ...accessRequestHandlers(deps),
    listApiKeys,
    createApiKey,
    updateApiKey,
    deleteApiKey,
  }
}

/** The operator is an owner of every organization that is not deleted. */
export async function operatorMembership(sql: Sql, organizationId: string): Promise<Membership> {
  const organization = await findOrganization(sql, organizationId)
  if (!organization || organization.deletedAt !== null)
    throw new Fault("not_found", `Cannot find the organization ${organizationId}`)
  return { organizationId, role: "primary_owner", permissions }
}

const organizationsListedMax = 1000

type Names =
  | "listAllOrganizations"
  | "openOrganization"
  | "limitOrganization"
  | "changeSingleSignOn"
  | "deleteOrganization"
  | "decideModelAccess"
  | "verifyAuditLogs"

function organizationOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, Names> {
  return {
    listAllOrganizations: async () => await listOrganizations(deps),
    openOrganization: async (call) => await createOrganization(deps, call),
    limitOrganization: async (call) => await changeLimits(deps, call),
    changeSingleSignOn: async (call) => await changeSso(deps, call),
    deleteOrganization: async (call) => await endOrganization(deps, call),
    async decideModelAccess(call) {
      const { organizationId } = acting(call)
      const { model: modelSku, state } = call.body
      const catalog = await deps.catalog()
      return await change(deps, call, async (scope) =>
        toRequest(
          await decideModelAccess({ ids: deps.ids, catalog }, scope, { organizationId, modelSku, state }),
        ),
      )
    },
    verifyAuditLogs: async ({ query }) => await verifyAuditLogs(deps, query.organization),
  }
}

const Listed = row({
  id: column.text,
  name: column.text,
  billing_account_id: column.text,
  is_personal: column.boolean,
  members: column.integer,
})

function listOrganizations({ database }: OperatorDeps): Promise<RowOf<typeof Listed>[]> {
  return Listed.all(database)`SELECT o.id, o.name, o.billing_account_id, o.is_personal,
      (SELECT count(*) FROM memberships m WHERE m.organization_id = o.id) AS members
    FROM organizations o WHERE o.deleted_at IS NULL ORDER BY o.id DESC LIMIT ${organizationsListedMax}`
}

/** Creates the owner too where no user has the address, and then returns a link for the first sign-in. */
const createOrganization: Handle<OperatorDeps, OperatorTable["openOrganization"]> = async (deps, call) => {
  const { name, owner, billing_account } = call.body
  const id = deps.ids.next("org")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    const known = await findUserByEmail(sql, owner)
    const user = known ?? (await newUser(sql, deps, { email: owner, now }))
    const billingAccountId =
      billing_account ??
      (await openAccount(sql, { email: owner, provider: deps.provider ?? "local" }, { now, ids: deps.ids }))
    if (!(await findBillingAccount(sql, billingAccountId)))
      throw new Fault("not_found", `Cannot find the billing account ${billingAccountId}`)
    await insertOwned(scope, { id, name, billingAccountId, userId: user.id })
    const link = known
      ? null
      : (await createOneTimeLink(sql, { userId: user.id, purpose: "sign_in" }, now)).link
    return {
      id,
      name,
      billing_account_id: billingAccountId,
      owner: user.id,
      link,
      url: link === null ? null : signInAddress(deps, link),
    }
  })
}

async function newUser(
  sql: Sql,
  { ids }: OperatorDeps,
  { email, now }: { email: string; now: Date },
): Promise<User> {
  const user = await insertUser(sql, { id: ids.next("usr"), email, createdAt: now, updatedAt: now })
  if (user) return user
  throw new Fault("conflict", `Cannot make the user ${email}: someone else does at this moment; try again`)
}

const changeLimits: Handle<OperatorDeps, OperatorTable["limitOrganization"]> = async (deps, call) => {
  const { organizationId: id } = acting(call)
  const { requests_per_minute, burst, regions } = call.body
  const fields = given({
    rateLimitPerMinute: requests_per_minute,
    rateLimitBurst: burst,
    visibleRegions: regions?.length === 0 ? null : regions,
  })
  return await change(deps, call, async (scope) => {
    const action = "organization.limit"
    return { id, ...limitsOf(await changeOrganization(scope, id, { action, fields, view: limitsOf })) }
  })
}

const changeSso: Handle<OperatorDeps, OperatorTable["changeSingleSignOn"]> = async (deps, call) => {
  const { organizationId: id } = acting(call)
  const { email_domains, groups, role, required } = call.body
  const fields = given({
    ssoEmailDomains: email_domains,
    ssoGroups: groups,
    ssoRole: role,
    ssoRequired: required,
  })
  return await change(deps, call, async (scope) => ({
    id,
    ...toPolicy(await changeOrganization(scope, id, { fields, view: toPolicy })),
  }))
}

/** Keys still authenticate and find nothing. The organization's texts, in question sets, kept content and files, are deleted. */
const endOrganization: Handle<OperatorDeps, OperatorTable["deleteOrganization"]> = async (deps, call) => {
  const { organizationId: id } = acting(call)
  await change(deps, call, async ({ sql, now, audit, invalidate }) => {
    const ended = await deleteOrganization(sql, id, now)
    if (!ended) throw notFound("organization")
    await deleteAlertsOf(sql, id)
    await deleteSetsOf(sql, id)
    await deleteContentOf(sql, id)
    await deleteFilesOf(sql, id)
    await audit("organization.delete", { organizationId: id, id }, { before: { name: ended.name } })
    invalidate({ table: "organizations", id })
  })
}

function limitsOf({ rateLimitPerMinute, rateLimitBurst, visibleRegions }: Organization) {
  return { requests_per_minute: rateLimitPerMinute, burst: rateLimitBurst, regions: visibleRegions }
}

/** Deleted organizations keep their log. */
async function verifyAuditLogs(
  { database }: OperatorDeps,
  organization: string | undefined,
): Promise<OutputOf<OperatorTable["verifyAuditLogs"]>> {
  const ids = await column.text.all(database)`SELECT id FROM organizations
    WHERE ${organization ?? null}::text IS NULL OR id = ${organization ?? null} ORDER BY id`
  const findings: OutputOf<OperatorTable["verifyAuditLogs"]> = []
  for (const id of ids) {
    const verdict = await verifyAudit(database, id)
    findings.push({
      organization_id: id,
      intact: verdict.intact,
      position: Number(verdict.intact ? verdict.entries : verdict.position),
      reason: verdict.intact ? null : verdict.reason,
    })
  }
  return findings
}

type VirtualModelNames = "listVirtualModels" | "saveVirtualModel" | "removeVirtualModel"

function virtualModelOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, VirtualModelNames> {
  return {
    listVirtualModels: async (call) =>
      (await listVirtualModels(deps.database, acting(call).organizationId)).map(toView),
    async saveVirtualModel(call) {
      const { organizationId } = acting(call)
      const { name, ...fields } = call.body
      const rule = requireRule(fields)
      const catalog = await deps.catalog()
      await refuseUndecided({ ...deps, catalog }, organizationId, { name, rule })
      return await change(deps, call, async (scope) => {
        const given = { organizationId, name, rule, createdBy: null }
        return toView(await saveVirtualModel({ ids: deps.ids, catalog }, scope, given))
      })
    },
    async removeVirtualModel(call) {
      const { organizationId } = acting(call)
      const { name } = call.params
      await change(deps, call, async (scope) => {
        const all = await lockAll(scope.sql, organizationId)
        const virtual = all.find((one) => one.name === name)
        if (!virtual)
          throw new Fault(
            "not_found",
            `Cannot remove ${name}: the organization has no virtual model of this name`,
          )
        await removeVirtualModel(scope, all, virtual)
      })
    },
  }
}

const usersListedMax = 1000
const ListedUser = row({
  id: column.text,
  email: column.text,
  name: column.text.nullable(),
  has_password: column.boolean,
  organizations: column.integer,
})

type UserNames = "listUsers" | "createSignInLink" | "resetPassword"
type Link = OutputOf<OperatorTable["createSignInLink"]>

function userOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, UserNames> {
  return {
    listUsers: async () =>
      await ListedUser.all(
        deps.database,
      )`SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL AS has_password,
          (SELECT count(*) FROM memberships m WHERE m.user_id = u.id) AS organizations
        FROM users u ORDER BY u.id DESC LIMIT ${usersListedMax}`,
    createSignInLink: async (call) => await makeLink(deps, call),
    resetPassword: async (call) => await resetPassword(deps, call),
  }
}

/** Without an address, for the first user. The password and the sessions stay as they are. */
const makeLink: Handle<OperatorDeps, OperatorTable["createSignInLink"]> = async (deps, call) => {
  const { email } = call.body
  return await change(deps, call, async (scope) => {
    const { sql } = scope
    const user = await (email === undefined ? findFirstUser(sql) : findUserByEmail(sql, email))
    if (!user)
      throw new Fault("not_found", `Cannot find ${email ? `a user with the address ${email}` : "a user"}`)
    const link = await linkFor(deps, scope, user)
    await tellOrganizations(scope, user.id, { action: "user.create_link" })
    return link
  })
}

/** The old password, the second factor, passkeys and every session end; the link signs in once, and the user then sets a new password. */
const resetPassword: Handle<OperatorDeps, OperatorTable["resetPassword"]> = async (deps, call) => {
  const { email } = call.body
  return await change(deps, call, async (scope) => {
    const { sql, now, invalidate } = scope
    const user = await findUserByEmail(sql, email)
    if (!user) throw new Fault("not_found", `Cannot find a user with the address ${email}`)
    await updateUser(sql, user.id, { passwordHash: null }, now)
    await endOneTimeLinks(sql, user.id)
    await deleteSecondFactor(sql, user.id)
    await deletePasskeys(sql, user.id)
    const ended = await revokeSessionsOfUser(sql, user.id, now)
    for (const { id } of ended) invalidate({ table: "sessions", id })
    const link = await linkFor(deps, scope, user)
    await tellOrganizations(scope, user.id, { action: "user.reset_password" })
    return { ...link, sessions_ended: ended.length }
  })
}

async function linkFor(deps: OperatorDeps, { sql, now }: ChangeScope, { id, email }: User): Promise<Link> {
  const { link, expiresAt } = await createOneTimeLink(sql, { userId: id, purpose: "sign_in" }, now)
  return { id, email, link, url: signInAddress(deps, link), expires_at: expiresAt.toISOString() }
}

interface OperatorDeps extends ControlDeps {
  /** Read when an endpoint needs it: without a running server that takes a moment. */
  catalog(): Promise<Catalog>
  /** Asks models at other servers what they can; null where no server runs. */
  readonly connector: Pick<ModelConnector, "whyUndecided"> | null
  /** Who moves money in for new billing accounts. */
  readonly provider: string
  /** What organizations without a limit of their own have. */
  readonly rateLimit: RateLimit
  /** The address of this installation as browsers see it. */
  publicUrl(): string
}

/** Where a one-time link signs in. In the fragment, which browsers do not send: it reaches no log of a proxy. */
const signInAddress = (deps: Pick<OperatorDeps, "publicUrl">, link: string): string =>
  `${deps.publicUrl().replace(/\/$/, "")}/sign-in#link=${link}`
