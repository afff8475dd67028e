/** A prepaid billing account and an organization that it pays for, straight in the store. */
import type { Ids } from "../src/base/ids.ts"
import { insertBillingAccount } from "../src/store/billing-accounts.ts"
import { insertOrganization } from "../src/store/organizations.ts"
import type { Database } from "../src/store/sql.ts"

export interface TestAccount {
  readonly accountId: string
  readonly organizationId: string
}

export async function insertAccount(
  database: Database,
  ids: Ids,
  now: Date,
  spendCutoffCents: bigint | null = null,
): Promise<TestAccount> {
  const [accountId, organizationId] = [ids.next("ba"), ids.next("org")]
  const times = { createdAt: now, updatedAt: now }
  await insertBillingAccount(database, {
    id: accountId,
    email: "a@example.com",
    mode: "prepaid",
    provider: "local",
    providerCustomerId: accountId,
    spendCutoffCents,
    ...times,
  })
  await insertOrganization(database, {
    id: organizationId,
    name: "o",
    billingAccountId: accountId,
    isPersonal: false,
    ...times,
  })
  return { accountId, organizationId }
}
