/** The operator's endpoints about organizations. */
import type { CallOf, Handlers, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { OperatorTable } from "../../contract/operator.ts"
import { verifyAudit } from "../../store/audit.ts"
import { findBillingAccount } from "../../store/billing-accounts.ts"
import { type Organization, deleteOrganization } from "../../store/organizations.ts"
import { deleteAlertsOf } from "../../store/alerts/rules.ts"
import { deleteContentOf } from "../../store/content/content.ts"
import { deleteFilesOf } from "../../store/files/files.ts"
import { deleteSetsOf } from "../../store/question-sets/sets.ts"
import { type RowOf, boolean, integer, row, text } from "../../store/rows.ts"
import type { Sql } from "../../store/sql.ts"
import { type User, findUserByEmail, insertUser } from "../../store/users.ts"
import { acting, change, notFound } from "../audited-change.ts"
import { openAccount } from "../first-start.ts"
import { decideModelAccess, toRequest } from "../models.ts"
import { changeOrganization, insertOwned } from "../organizations.ts"
import { given } from "../resource.ts"
import { toPolicy } from "../session-list.ts"
import { createOneTimeLink } from "../sessions.ts"
import { type OperatorDeps, signInAddress } from "./deps.ts"

const organizationsListedMax = 1000

type Names =
  | "listAllOrganizations"
  | "openOrganization"
  | "limitOrganization"
  | "changeSingleSignOn"
  | "deleteOrganization"
  | "decideModelAccess"
  | "verifyAuditLogs"

export function organizationOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, Names> {
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
  id: text,
  name: text,
  billing_account_id: text,
  is_personal: boolean,
  members: integer,
})

function listOrganizations({ database }: OperatorDeps): Promise<RowOf<typeof Listed>[]> {
  return Listed.all(
    database,
    `SELECT o.id, o.name, o.billing_account_id, o.is_personal,
       (SELECT count(*) FROM memberships m WHERE m.organization_id = o.id) AS members
     FROM organizations o WHERE o.deleted_at IS NULL ORDER BY o.id DESC LIMIT $1`,
    [organizationsListedMax],
  )
}

/** Creates the owner too where no user has the address, and then returns a link for the first sign-in. */
async function createOrganization(
  deps: OperatorDeps,
  call: CallOf<OperatorTable["openOrganization"]>,
): Promise<OutputOf<OperatorTable["openOrganization"]>> {
  const { name, owner, billing_account } = call.body
  const id = deps.ids.next("org")
  return await change(deps, call, async (scope) => {
    const { sql, now } = scope
    const known = await findUserByEmail(sql, owner)
    const user = known ?? (await newUser(sql, deps, { email: owner, now }))
    const billingAccountId =
      billing_account ??
      (await openAccount(
        sql,
        { email: owner, provider: deps.provider ?? "local", startingCredit: true },
        { now, ids: deps.ids },
      ))
    if (!(await findBillingAccount(sql, billingAccountId)))
      throw new Fault("not_found", `Cannot find the billing account ${billingAccountId}`)
    await insertOwned(scope, { id, name, billingAccountId, userId: user.id })
    const link = known ? null : (await createOneTimeLink(sql, user.id, now)).link
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
  { email, now }: { readonly email: string; readonly now: Date },
): Promise<User> {
  const user = await insertUser(sql, { id: ids.next("usr"), email, createdAt: now, updatedAt: now })
  if (user) return user
  throw new Fault("conflict", `Cannot make the user ${email}: someone else does at this moment; try again`)
}

async function changeLimits(
  deps: OperatorDeps,
  call: CallOf<OperatorTable["limitOrganization"]>,
): Promise<OutputOf<OperatorTable["limitOrganization"]>> {
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

async function changeSso(
  deps: OperatorDeps,
  call: CallOf<OperatorTable["changeSingleSignOn"]>,
): Promise<OutputOf<OperatorTable["changeSingleSignOn"]>> {
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
async function endOrganization(
  deps: OperatorDeps,
  call: CallOf<OperatorTable["deleteOrganization"]>,
): Promise<void> {
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
  const ids = await text.all(
    database,
    "SELECT id FROM organizations WHERE $1::text IS NULL OR id = $1 ORDER BY id",
    [organization ?? null],
  )
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
