/** The operator's commands about organizations. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import { EmailAddress, Text, nameCharactersMax } from "../../contract/platform/values.ts"
import { findBillingAccount } from "../../store/billing-accounts.ts"
import {
  type Organization,
  deleteOrganization,
  lockOrganization,
  updateOrganization,
} from "../../store/organizations.ts"
import { deleteAlertsOf } from "../../store/alerts/rules.ts"
import { deleteContentOf } from "../../store/content/content.ts"
import { deleteFilesOf } from "../../store/files/files.ts"
import { deleteSetsOf } from "../../store/question-sets/sets.ts"
import type { Sql } from "../../store/sql.ts"
import { type User, findUserByEmail, insertUser } from "../../store/users.ts"
import { change, difference, systemCaller } from "../change.ts"
import { openAccount } from "../first-start.ts"
import { insertOwned } from "../organizations.ts"
import { toPolicy } from "../session-list.ts"
import { createOneTimeLink } from "../sessions.ts"
import { type Operations, type OperatorParts, read, signInAddress } from "./input.ts"

const organizationsListedMax = 1000
const limitMax = 10_000_000

const CreateInput = z.strictObject({
  name: Text(nameCharactersMax),
  owner: EmailAddress,
  billing_account: z.string().optional(),
})
const Limit = z.coerce.number().int().min(1).max(limitMax)
const UpdateInput = z.strictObject({
  id: z.string(),
  requests_per_minute: Limit.optional(),
  burst: Limit.optional(),
  /** An empty list shows every region again. */
  regions: z.array(z.string().min(1).max(64)).max(1000).optional(),
})
const SsoInput = z.strictObject({
  id: z.string(),
  email_domains: z
    .array(
      z
        .string()
        .trim()
        .toLowerCase()
        .regex(/^[a-z0-9.-]{1,253}$/, "a domain is needed, as example.com"),
    )
    .max(100)
    .optional(),
  groups: z.array(z.string().min(1).max(256)).max(100).optional(),
  role: z.enum(["owner", "member"]).optional(),
  required: z.boolean().optional(),
})
const OneInput = z.strictObject({ id: z.string() })

export function organizationOperations(parts: OperatorParts): Operations {
  return {
    "orgs.list": async () => await listOrganizations(parts),
    "orgs.create": async (input) => await createOrganization(parts, read(CreateInput, input)),
    "orgs.update": async (input) => await changeLimits(parts, read(UpdateInput, input)),
    "orgs.sso": async (input) => await changeSso(parts, read(SsoInput, input)),
    "orgs.delete": async (input) => await endOrganization(parts, read(OneInput, input).id),
  }
}

async function listOrganizations({ database }: OperatorParts): Promise<unknown> {
  return await database.query(
    `SELECT o.id, o.name, o.billing_account_id, o.is_personal,
       (SELECT count(*)::int FROM memberships m WHERE m.organization_id = o.id) AS members
     FROM organizations o WHERE o.deleted_at IS NULL ORDER BY o.id DESC LIMIT $1`,
    [organizationsListedMax],
  )
}

/** Creates the owner too where no user has the address, and then returns a link for the first sign-in. */
async function createOrganization(
  parts: OperatorParts,
  { name, owner, billing_account }: z.infer<typeof CreateInput>,
): Promise<unknown> {
  const id = parts.ids.next("org")
  return await change(parts, systemCaller, async (scope) => {
    const { sql, now } = scope
    const known = await findUserByEmail(sql, owner)
    const user = known ?? (await newUser(sql, parts, owner, now))
    const billingAccountId =
      billing_account ??
      (await openAccount(
        sql,
        { email: owner, provider: parts.provider ?? "local", startingCredit: true },
        now,
        parts.ids,
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
      url: link === null ? null : signInAddress(parts, link),
    }
  })
}

async function newUser(sql: Sql, { ids }: OperatorParts, email: string, now: Date): Promise<User> {
  const user = await insertUser(sql, { id: ids.next("usr"), email, createdAt: now, updatedAt: now })
  if (user) return user
  throw new Fault("conflict", `Cannot make the user ${email}: someone else does at this moment; try again`)
}

async function changeLimits(
  parts: OperatorParts,
  { id, requests_per_minute, burst, regions }: z.infer<typeof UpdateInput>,
): Promise<unknown> {
  return await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
    const before = await lockLive(sql, id)
    const after = await updateOrganization(
      sql,
      id,
      {
        ...(requests_per_minute === undefined ? {} : { rateLimitPerMinute: requests_per_minute }),
        ...(burst === undefined ? {} : { rateLimitBurst: burst }),
        ...(regions === undefined ? {} : { visibleRegions: regions.length > 0 ? regions : null }),
      },
      now,
    )
    if (!after) throw unknown(id)
    await audit({
      organizationId: id,
      action: "organization.limit",
      resource: { type: "organization", id },
      ...difference(limitsOf(before), limitsOf(after)),
    })
    touched({ table: "organizations", id })
    return { id, ...limitsOf(after) }
  })
}

async function changeSso(
  parts: OperatorParts,
  { id, email_domains, groups, role, required }: z.infer<typeof SsoInput>,
): Promise<unknown> {
  return await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
    const before = await lockLive(sql, id)
    const after = await updateOrganization(
      sql,
      id,
      {
        ...(email_domains === undefined ? {} : { ssoEmailDomains: email_domains }),
        ...(groups === undefined ? {} : { ssoGroups: groups }),
        ...(role === undefined ? {} : { ssoRole: role }),
        ...(required === undefined ? {} : { ssoRequired: required }),
      },
      now,
    )
    if (!after) throw unknown(id)
    await audit({
      organizationId: id,
      action: "organization.update",
      resource: { type: "organization", id },
      ...difference(toPolicy(before), toPolicy(after)),
    })
    touched({ table: "organizations", id })
    return { id, ...toPolicy(after) }
  })
}

/** Keys still authenticate and find nothing. The organization's texts, in question sets, kept content and files, are deleted. */
async function endOrganization(parts: OperatorParts, id: string): Promise<unknown> {
  return await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
    const ended = await deleteOrganization(sql, id, now)
    if (!ended) throw unknown(id)
    await deleteAlertsOf(sql, id)
    await deleteSetsOf(sql, id)
    await deleteContentOf(sql, id)
    await deleteFilesOf(sql, id)
    await audit({
      organizationId: id,
      action: "organization.delete",
      resource: { type: "organization", id },
      before: { name: ended.name },
      after: null,
    })
    touched({ table: "organizations", id })
    return { id, deleted: true }
  })
}

async function lockLive(sql: Sql, id: string): Promise<Organization> {
  const organization = await lockOrganization(sql, id)
  if (!organization || organization.deletedAt !== null) throw unknown(id)
  return organization
}

const unknown = (id: string): Fault => new Fault("not_found", `Cannot find the organization ${id}`)

function limitsOf({ rateLimitPerMinute, rateLimitBurst, visibleRegions }: Organization) {
  return { requests_per_minute: rateLimitPerMinute, burst: rateLimitBurst, regions: visibleRegions }
}
