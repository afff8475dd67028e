/** Organizations and who belongs to them. */
import type { Role } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { insertNew, insertRecord, queryRecord, queryRecords, toPage, updateRecord } from "./rows.ts"
import type { NewRecord, Page, PageRequest } from "./rows.ts"
import type { Sql } from "./sql.ts"

export interface Organization {
  readonly id: string
  readonly name: string
  readonly billingAccountId: string
  readonly isPersonal: boolean
  /** Null means the default of the contract. */
  readonly storedResponsesDays: number | null
  readonly rateLimitPerMinute: number | null
  readonly rateLimitBurst: number | null
  /** Null means every region. */
  readonly visibleRegions: readonly string[] | null
  /** In lower case: a user who signs in with single sign-on and such an address becomes a member. */
  readonly ssoEmailDomains: readonly string[]
  readonly ssoGroups: readonly string[]
  readonly ssoRole: "owner" | "member"
  readonly ssoRequired: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly deletedAt: Date | null
  /** Counts the changes. */
  readonly version: bigint
}

interface Membership {
  readonly organizationId: string
  readonly userId: string
  readonly role: Role
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface Member extends Membership {
  readonly email: string
  readonly name: string | null
}

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
  organization: NewRecord<
    Organization,
    "version" | "ssoEmailDomains" | "ssoGroups" | "ssoRole" | "ssoRequired"
  >,
): Promise<Organization> {
  return insertNew<Organization>(sql, "organizations", { ...organization })
}

/** Also returns a deleted one: its keys still authenticate. */
/** That of the first start: ids sort by time. */
export function findFirstOrganization(sql: Sql): Promise<Organization | null> {
  return queryRecord<Organization>(sql, "SELECT * FROM organizations ORDER BY id LIMIT 1", [])
}

export function findOrganization(sql: Sql, id: string): Promise<Organization | null> {
  return queryRecord<Organization>(sql, "SELECT * FROM organizations WHERE id = $1", [id])
}

/**
 * Holds others who lock back until the transaction ends; for rules over the whole organization, such as its last primary
 * owner. Rows that refer to it can be inserted meanwhile: an audit entry of another transaction need not wait.
 */
export function lockOrganization(sql: Sql, id: string): Promise<Organization | null> {
  return queryRecord<Organization>(sql, "SELECT * FROM organizations WHERE id = $1 FOR NO KEY UPDATE", [id])
}

/** Those of which the user is a primary owner, without deleted ones. */
export async function countOrganizationsOwned(sql: Sql, userId: string): Promise<number> {
  const [row] = await sql.query<{ owned: number }>(
    `SELECT count(*)::int AS owned FROM organizations o JOIN memberships m ON m.organization_id = o.id
     WHERE m.user_id = $1 AND m.role = 'primary_owner' AND o.deleted_at IS NULL`,
    [userId],
  )
  return row?.owned ?? 0
}

/** Newest first, without deleted ones. */
export function listOrganizationsOfUser(
  sql: Sql,
  userId: string,
): Promise<(Organization & { readonly role: Role })[]> {
  return queryRecords(
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
  return queryRecords<Organization>(
    sql,
    "SELECT * FROM organizations WHERE billing_account_id = $1 AND deleted_at IS NULL ORDER BY id DESC",
    [billingAccountId],
  )
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
  changes: Record<string, unknown>,
): Promise<Organization | null> {
  return updateRecord<Organization>(sql, {
    table: "organizations",
    where: "id = $1 AND deleted_at IS NULL",
    whereValues: [id],
    changes,
    also: "version = version + 1",
  })
}

/** Returns null when the user is a member already. */
export function insertMembership(sql: Sql, membership: Membership): Promise<Membership | null> {
  return insertRecord<Membership>(sql, "memberships", { ...membership }, "ON CONFLICT DO NOTHING")
}

const joinableMax = 100

/** Those that take members by single sign-on with this domain or one of these groups. */
export function findJoinableOrganizations(
  sql: Sql,
  domain: string | null,
  groups: readonly string[],
): Promise<Organization[]> {
  return queryRecords<Organization>(
    sql,
    `SELECT * FROM organizations WHERE deleted_at IS NULL
       AND ($1::text = ANY (sso_email_domains) OR sso_groups && $2::text[]) ORDER BY id LIMIT ${joinableMax}`,
    [domain, groups],
  )
}

export function findMembership(sql: Sql, organizationId: string, userId: string): Promise<Membership | null> {
  return queryRecord<Membership>(
    sql,
    "SELECT * FROM memberships WHERE organization_id = $1 AND user_id = $2",
    [organizationId, userId],
  )
}

export function updateMembership(
  sql: Sql,
  organizationId: string,
  userId: string,
  changes: Pick<Membership, "role" | "updatedAt">,
): Promise<Membership | null> {
  return updateRecord<Membership>(sql, {
    table: "memberships",
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
  return queryRecord<Membership>(
    sql,
    "DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2 RETURNING *",
    [organizationId, userId],
  )
}

export async function countMembers(
  sql: Sql,
  organizationId: string,
): Promise<{ readonly members: number; readonly primaryOwners: number }> {
  const [counts] = await sql.query<{ members: number; owners: number }>(
    `SELECT count(*)::int AS members, count(*) FILTER (WHERE role = 'primary_owner')::int AS owners
     FROM memberships WHERE organization_id = $1`,
    [organizationId],
  )
  return { members: counts?.members ?? 0, primaryOwners: counts?.owners ?? 0 }
}

/** Those of the addresses, in lower case, that members have. */
export async function listMembersByEmail(
  sql: Sql,
  organizationId: string,
  addresses: readonly string[],
): Promise<string[]> {
  const rows = await sql.query<{ email: string }>(
    `SELECT lower(u.email) AS email FROM memberships m JOIN users u ON u.id = m.user_id
     WHERE m.organization_id = $1 AND lower(u.email) = ANY($2::text[])`,
    [organizationId, addresses.map((address) => address.toLowerCase())],
  )
  return rows.map(({ email }) => email)
}

/** Those who joined last come first. */
export async function pageMembers(
  sql: Sql,
  organizationId: string,
  page: PageRequest,
): Promise<Page<Member>> {
  const [before, userId] = readCursor(page.cursor)
  const members = await queryRecords<Member>(
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
