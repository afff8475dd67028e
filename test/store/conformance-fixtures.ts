/** Rows that the conformance suites start from. */
import { createIds } from "../../src/base/ids.ts"
import { insertBillingAccount } from "../../src/store/billing-accounts.ts"
import { insertKey, type Key } from "../../src/store/keys.ts"
import { insertOrganization } from "../../src/store/organizations.ts"
import type { Page } from "../../src/store/pages.ts"
import type { Sql } from "../../src/store/sql.ts"
import { insertUser } from "../../src/store/users.ts"

const ids = createIds()
export const nextId = (prefix: Parameters<typeof ids.next>[0]): string => ids.next(prefix)
export const at = (seconds: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds))
export const hashOf = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)
export const times = { createdAt: at(0), updatedAt: at(0) }

export async function givenUser(sql: Sql): Promise<string> {
  const id = nextId("usr")
  await insertUser(sql, { id, email: `${id}@example.com`, name: "Ada", ...times })
  return id
}

export async function givenOrganization(
  sql: Sql,
  isPersonal = false,
): Promise<{ id: string; billingAccountId: string }> {
  const billingAccountId = nextId("ba")
  await insertBillingAccount(sql, {
    id: billingAccountId,
    email: "pay@example.com",
    mode: "prepaid",
    provider: "local",
    ...times,
  })
  const id = nextId("org")
  await insertOrganization(sql, { id, name: "Acme", billingAccountId, isPersonal, ...times })
  return { id, billingAccountId }
}

export async function givenKey(sql: Sql, organizationId: string, userId?: string): Promise<Key> {
  const owner = userId === undefined ? { scope: "organization" as const } : { scope: "user" as const, userId }
  return insertKey(sql, {
    id: nextId("key"),
    organizationId,
    name: "ci",
    permissions: ["inference", "api-read"],
    secretHash: hashOf(1),
    ...owner,
    ...times,
  })
}

export async function readPages<Item>(
  read: (cursor: string | null) => Promise<Page<Item>>,
): Promise<Item[][]> {
  const pages: Item[][] = []
  let cursor: string | null = null
  do {
    const page: Page<Item> = await read(cursor)
    pages.push(page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  return pages
}
