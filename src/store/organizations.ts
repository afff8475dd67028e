/** Organizations and who belongs to them. */
import { roles } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { column, type NewRowOf, row, type RowOf, table } from "./rows.ts"
import { type Page, type PageRequest, toPage } from "./pages.ts"
import type { Sql } from "./sql.ts"

const Organization = table("organizations", {
  id: column.text,
  name: column.text,
  billingAccountId: column.text,
  isPersonal: column.boolean,
  /** Null means the default of the contract. */
  storedResponsesDays: column.integer.nullable(),
  rateLimitPerMinute: column.integer.nullable(),
  rateLimitBurst: column.integer.nullable(),
  /** Null means every region. */
  visibleRegions: column.text.list().nullable(),
  /** In lower case: a user who signs in with single sign-on and such an address becomes a member. */
  ssoEmailDomains: column.text.list().withDefault(),
  ssoGroups: column.text.list().withDefault(),
  ssoRole: column.oneOf("owner", "member").withDefault(),
  ssoRequired: column.boolean.withDefault(),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
  deletedAt: column.timestamp.nullable(),
  /** Counts the changes. */
  version: column.bigint.withDefault(),
})
export type Organization = RowOf<typeof Organization>

const Membership = table("memberships", {
  organizationId: column.text,
  userId: column.text,
  role: column.oneOf(...roles),
  createdAt: column.timestamp,
  updatedAt: column.timestamp,
})
type Membership = RowOf<typeof Membership>

const Member = row({ ...Membership.columns, email: column.text, name: column.text.nullable() })
export type Member = RowOf<typeof Member>

type OrganizationChanges = Partial<
  Pick<
    Organization,
    | "name"
    | "billingAccountId"
    | "storedResponsesDays"
    | "rateLimitPerMinute"
    | "rateLimitBurst"
    | "visibleRegions"
    | "ssoEmailDomains"
    | "ssoGroups"
    | "ssoRole"
    | "ssoRequired"
  >
>

export const insertOrganization = (sql: Sql, organization: NewRowOf<typeof Organization>) =>
  Organization.insert(sql, { ...organization })

/** Also returns a deleted one: its keys still authenticate. */
/** That of the first start: ids sort by time. */
export const findFirstOrganization = (sql: Sql) =>
  Organization.first(sql)`SELECT * FROM organizations ORDER BY id LIMIT 1`

export const findOrganization = (sql: Sql, id: string) => Organization.find(sql)`id = ${id}`

/**
 * Holds others who lock back until the transaction ends; for rules over the whole organization, such as its last primary
 * owner. Rows that refer to it can be inserted meanwhile: an audit entry of another transaction need not wait.
 */
export const lockOrganization = (sql: Sql, id: string) => Organization.find(sql)`id = ${id} FOR NO KEY UPDATE`

/** Those of which the user is a primary owner, without deleted ones. */
export const countOrganizationsOwned = (sql: Sql, userId: string) =>
  column.integer.one(sql)`SELECT count(*) FROM organizations o
    JOIN memberships m ON m.organization_id = o.id
    WHERE m.user_id = ${userId} AND m.role = 'primary_owner' AND o.deleted_at IS NULL`

const OrganizationOfUser = row({ ...Organization.columns, role: column.oneOf(...roles) })

/** Newest first, without deleted ones. */
export const listOrganizationsOfUser = (sql: Sql, userId: string) =>
  OrganizationOfUser.all(sql)`SELECT o.*, m.role FROM organizations o
    JOIN memberships m ON m.organization_id = o.id
    WHERE m.user_id = ${userId} AND o.deleted_at IS NULL ORDER BY o.id DESC`

/** Those whose spend the account pays; without deleted ones. */
export const listOrganizationsOfBillingAccount = (sql: Sql, billingAccountId: string) =>
  Organization.list(sql)`billing_account_id = ${billingAccountId} AND deleted_at IS NULL
    ORDER BY id DESC`

export function updateOrganization(
  sql: Sql,
  id: string,
  changes: OrganizationChanges,
  updatedAt: Date,
): Promise<Organization | null> {
  return changeOrganization(sql, id, { ...changes, updatedAt })
}

export function deleteOrganization(sql: Sql, id: string, deletedAt: Date): Promise<Organization | null> {
  return changeOrganization(sql, id, { deletedAt, updatedAt: deletedAt })
}

const changeOrganization = (
  sql: Sql,
  id: string,
  changes: OrganizationChanges & Partial<Pick<Organization, "updatedAt" | "deletedAt">>,
) => Organization.update(sql, changes, "version = version + 1")`id = ${id} AND deleted_at IS NULL`

/** Returns null when the user is a member already. */
export const insertMembership = (sql: Sql, membership: Membership) =>
  Membership.insertIfNew(sql, { ...membership }, "ON CONFLICT DO NOTHING")

const joinableMax = 100

/** Those that take members by single sign-on with this domain or one of these groups. */
export const findJoinableOrganizations = (sql: Sql, domain: string | null, groups: readonly string[]) =>
  Organization.list(sql)`deleted_at IS NULL
    AND (${domain}::text = ANY (sso_email_domains) OR sso_groups && ${groups}::text[])
    ORDER BY id LIMIT ${joinableMax}`

export const findMembership = (sql: Sql, organizationId: string, userId: string) =>
  Membership.find(sql)`organization_id = ${organizationId} AND user_id = ${userId}`

export const updateMembership = (
  sql: Sql,
  organizationId: string,
  userId: string,
  changes: Pick<Membership, "role" | "updatedAt">,
) => Membership.update(sql, { ...changes })`organization_id = ${organizationId} AND user_id = ${userId}`

/** Returns what was removed, or null. */
export const deleteMembership = (sql: Sql, organizationId: string, userId: string) =>
  Membership.first(sql)`DELETE FROM memberships
    WHERE organization_id = ${organizationId} AND user_id = ${userId} RETURNING *`

const MemberCounts = row({ members: column.integer, primaryOwners: column.integer })

export const countMembers = (sql: Sql, organizationId: string) =>
  MemberCounts.one(
    sql,
  )`SELECT count(*) AS members, count(*) FILTER (WHERE role = 'primary_owner') AS primary_owners
    FROM memberships WHERE organization_id = ${organizationId}`

/** Those of the addresses, in lower case, that members have. */
export const listMembersByEmail = (sql: Sql, organizationId: string, addresses: readonly string[]) =>
  column.text.all(sql)`SELECT lower(u.email) FROM memberships m JOIN users u ON u.id = m.user_id
    WHERE m.organization_id = ${organizationId}
      AND lower(u.email) = ANY(${addresses.map((address) => address.toLowerCase())}::text[])`

/** Those who joined last come first. */
export async function pageMembers(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<Member>> {
  const [before, userId] = readCursor(page.cursor)
  const members = await Member.all(sql)`SELECT m.*, u.email, u.name FROM memberships m
    JOIN users u ON u.id = m.user_id
    WHERE m.organization_id = ${organizationId} AND (${before}::timestamptz IS NULL OR (m.created_at,
      m.user_id) < (${before}, ${userId}))
    ORDER BY m.created_at DESC, m.user_id DESC LIMIT ${page.limit + 1}`
  return toPage(members, page.limit, (member) => `${member.createdAt.getTime()}.${member.userId}`)
}

/** A membership has no id of its own: the place in the list is when it began and, within a millisecond, whose it is. */
function readCursor(cursor: PageRequest["cursor"]): [Date | null, string | null] {
  if (cursor === undefined || cursor === null) return [null, null]
  const [, ms, userId] = /^(\d{1,15})\.(.+)$/s.exec(cursor) ?? []
  if (ms === undefined || userId === undefined) {
    throw new Fault(
      "invalid_query",
      "Cannot list the members: the cursor is unknown; use the next_cursor of the page before",
    )
  }
  return [new Date(Number(ms)), userId]
}
