/** Organizations and who belongs to them. */
import { roles } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { type Page, type PageRequest, toPage } from "./pages.ts"
import {
  type NewRowOf,
  type RowOf,
  bigint,
  boolean,
  integer,
  oneOf,
  row,
  table,
  text,
  timestamp,
} from "./rows.ts"
import type { Sql } from "./sql.ts"

const Organization = table("organizations", {
  id: text,
  name: text,
  billingAccountId: text,
  isPersonal: boolean,
  /** Null means the default of the contract. */
  storedResponsesDays: integer.nullable(),
  rateLimitPerMinute: integer.nullable(),
  rateLimitBurst: integer.nullable(),
  /** Null means every region. */
  visibleRegions: text.list().nullable(),
  /** In lower case: a user who signs in with single sign-on and such an address becomes a member. */
  ssoEmailDomains: text.list().withDefault(),
  ssoGroups: text.list().withDefault(),
  ssoRole: oneOf("owner", "member").withDefault(),
  ssoRequired: boolean.withDefault(),
  createdAt: timestamp,
  updatedAt: timestamp,
  deletedAt: timestamp.nullable(),
  /** Counts the changes. */
  version: bigint.withDefault(),
})
export type Organization = RowOf<typeof Organization>

const Membership = table("memberships", {
  organizationId: text,
  userId: text,
  role: oneOf(...roles),
  createdAt: timestamp,
  updatedAt: timestamp,
})
type Membership = RowOf<typeof Membership>

const Member = row({
  ...Membership.columns,
  email: text,
  name: text.nullable(),
})
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

export function insertOrganization(
  sql: Sql,
  organization: NewRowOf<typeof Organization>,
): Promise<Organization> {
  return Organization.insert(sql, { ...organization })
}

/** Also returns a deleted one: its keys still authenticate. */
/** That of the first start: ids sort by time. */
export function findFirstOrganization(sql: Sql): Promise<Organization | null> {
  return Organization.first(sql, "SELECT * FROM organizations ORDER BY id LIMIT 1", [])
}

export function findOrganization(sql: Sql, id: string): Promise<Organization | null> {
  return Organization.find(sql, "id = $1", [id])
}

/**
 * Holds others who lock back until the transaction ends; for rules over the whole organization, such as its last primary
 * owner. Rows that refer to it can be inserted meanwhile: an audit entry of another transaction need not wait.
 */
export function lockOrganization(sql: Sql, id: string): Promise<Organization | null> {
  return Organization.find(sql, "id = $1 FOR NO KEY UPDATE", [id])
}

/** Those of which the user is a primary owner, without deleted ones. */
export async function countOrganizationsOwned(sql: Sql, userId: string): Promise<number> {
  return await integer.one(
    sql,
    `SELECT count(*) FROM organizations o JOIN memberships m ON m.organization_id = o.id
     WHERE m.user_id = $1 AND m.role = 'primary_owner' AND o.deleted_at IS NULL`,
    [userId],
  )
}

const OrganizationOfUser = row({ ...Organization.columns, role: oneOf(...roles) })

/** Newest first, without deleted ones. */
export function listOrganizationsOfUser(
  sql: Sql,
  userId: string,
): Promise<RowOf<typeof OrganizationOfUser>[]> {
  return OrganizationOfUser.all(
    sql,
    `SELECT o.*, m.role FROM organizations o JOIN memberships m ON m.organization_id = o.id
     WHERE m.user_id = $1 AND o.deleted_at IS NULL ORDER BY o.id DESC`,
    [userId],
  )
}

/** Those whose spend the account pays; without deleted ones. */
export function listOrganizationsOfBillingAccount(
  sql: Sql,
  billingAccountId: string,
): Promise<Organization[]> {
  return Organization.list(sql, "billing_account_id = $1 AND deleted_at IS NULL ORDER BY id DESC", [
    billingAccountId,
  ])
}

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

function changeOrganization(
  sql: Sql,
  id: string,
  changes: OrganizationChanges & Partial<Pick<Organization, "updatedAt" | "deletedAt">>,
): Promise<Organization | null> {
  return Organization.update(sql, {
    where: "id = $1 AND deleted_at IS NULL",
    whereValues: [id],
    changes,
    also: "version = version + 1",
  })
}

/** Returns null when the user is a member already. */
export function insertMembership(sql: Sql, membership: Membership): Promise<Membership | null> {
  return Membership.insertIfNew(sql, { ...membership }, "ON CONFLICT DO NOTHING")
}

const joinableMax = 100

/** Those that take members by single sign-on with this domain or one of these groups. */
export function findJoinableOrganizations(
  sql: Sql,
  domain: string | null,
  groups: readonly string[],
): Promise<Organization[]> {
  return Organization.list(
    sql,
    `deleted_at IS NULL
       AND ($1::text = ANY (sso_email_domains) OR sso_groups && $2::text[]) ORDER BY id LIMIT ${joinableMax}`,
    [domain, groups],
  )
}

export function findMembership(sql: Sql, organizationId: string, userId: string): Promise<Membership | null> {
  return Membership.find(sql, "organization_id = $1 AND user_id = $2", [organizationId, userId])
}

export function updateMembership(
  sql: Sql,
  organizationId: string,
  userId: string,
  changes: Pick<Membership, "role" | "updatedAt">,
): Promise<Membership | null> {
  return Membership.update(sql, {
    where: "organization_id = $1 AND user_id = $2",
    whereValues: [organizationId, userId],
    changes: { ...changes },
  })
}

/** Returns what was removed, or null. */
export function deleteMembership(
  sql: Sql,
  organizationId: string,
  userId: string,
): Promise<Membership | null> {
  return Membership.first(
    sql,
    "DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2 RETURNING *",
    [organizationId, userId],
  )
}

const MemberCounts = row({ members: integer, primaryOwners: integer })

export function countMembers(sql: Sql, organizationId: string): Promise<RowOf<typeof MemberCounts>> {
  return MemberCounts.one(
    sql,
    `SELECT count(*) AS members, count(*) FILTER (WHERE role = 'primary_owner') AS primary_owners
     FROM memberships WHERE organization_id = $1`,
    [organizationId],
  )
}

/** Those of the addresses, in lower case, that members have. */
export async function listMembersByEmail(
  sql: Sql,
  organizationId: string,
  addresses: readonly string[],
): Promise<string[]> {
  return await text.all(
    sql,
    `SELECT lower(u.email) FROM memberships m JOIN users u ON u.id = m.user_id
     WHERE m.organization_id = $1 AND lower(u.email) = ANY($2::text[])`,
    [organizationId, addresses.map((address) => address.toLowerCase())],
  )
}

/** Those who joined last come first. */
export async function pageMembers(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<Member>> {
  const [before, userId] = readCursor(page.cursor)
  const members = await Member.all(
    sql,
    `SELECT m.*, u.email, u.name FROM memberships m JOIN users u ON u.id = m.user_id
     WHERE m.organization_id = $1 AND ($2::timestamptz IS NULL OR (m.created_at, m.user_id) < ($2, $3))
     ORDER BY m.created_at DESC, m.user_id DESC LIMIT $4`,
    [organizationId, before, userId, page.limit + 1],
  )
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
