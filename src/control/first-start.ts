/** Sets up a fresh installation: the first user, a personal organization, a billing account with credit, one key. */
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import { fromCents } from "../base/money.ts"
import { permissions } from "../contract/access.ts"
import { appendAudit } from "../store/audit.ts"
import { insertBillingAccount } from "../store/billing-accounts.ts"
import { insertKey } from "../store/keys.ts"
import { appendLedger } from "../store/ledger.ts"
import { insertMembership, insertOrganization } from "../store/organizations.ts"
import { run } from "../store/rows.ts"
import type { Database, Sql } from "../store/sql.ts"
import { hasUsers, insertUser } from "../store/users.ts"
import { hashSecret, newKeyValue, parseBearer } from "./principals.ts"
import { hashPassword } from "./passwords.ts"
import { createOneTimeLink } from "./sessions.ts"

/** Its reference in the ledger. */
export const startingCredit = "starting credit"
const startingCreditCents = 10_000
const autoRefillThresholdCents = 1_000n
const autoRefillRechargeToCents = 10_000n

/** What an unattended installation brings along; nothing secret is printed then. */
export interface Bootstrap {
  readonly key?: string | undefined
  readonly email?: string | undefined
  readonly password?: string | undefined
  /** Who moves money in for the first account; the local provider unless told. */
  readonly provider?: string | undefined
}

export interface FirstStart {
  readonly organizationId: string
  readonly userId: string
  readonly email: string
  /** The key to show once; null when the operator brought it. */
  readonly keyValue: string | null
  /** Signs the first user in to the console, once: the address is `/sign-in#link=<this>`. Null when unattended. */
  readonly consoleLink: string | null
}

/** Returns null when the installation is already set up. Several processes may try at once: one does it. */
export async function firstStart(
  database: Database,
  bootstrap: Bootstrap,
  { clock, ids }: { readonly clock: Clock; readonly ids: Ids },
): Promise<FirstStart | null> {
  if (await hasUsers(database)) return null
  const brought = bootstrap.key === undefined ? null : readBroughtKey(bootstrap.key)
  const passwordHash = bootstrap.password === undefined ? null : await hashPassword(bootstrap.password)
  return await database.transaction(async (sql) => {
    await run(sql)`SELECT pg_advisory_xact_lock(hashtext('umpire first start'))`
    if (await hasUsers(sql)) return null
    return await setUp(
      sql,
      {
        brought,
        passwordHash,
        email: bootstrap.email ?? "owner@localhost",
        provider: bootstrap.provider ?? "local",
      },
      { now: new Date(clock.nowMs()), ids },
    )
  })
}

interface BroughtKey {
  readonly id: string
  readonly secretHash: Uint8Array
}

interface Founder {
  readonly brought: BroughtKey | null
  readonly passwordHash: string | null
  readonly email: string
  readonly provider: string
}

async function setUp(
  sql: Sql,
  founder: Founder,
  { now, ids }: { readonly now: Date; readonly ids: Ids },
): Promise<FirstStart> {
  const times = { createdAt: now, updatedAt: now }
  const { email } = founder
  const userId = ids.next("usr")
  await insertUser(sql, { id: userId, email, name: null, passwordHash: founder.passwordHash, ...times })
  const account = { email, provider: founder.provider }
  const billingAccountId = await openAccount(sql, account, { now, ids })
  const organizationId = ids.next("org")
  await insertOrganization(sql, {
    id: organizationId,
    name: "Personal",
    billingAccountId,
    isPersonal: true,
    ...times,
  })
  await insertMembership(sql, { organizationId, userId, role: "primary_owner", ...times })
  await appendAudit(sql, {
    id: ids.next("aud"),
    organizationId,
    actorKind: "system",
    action: "organization.create",
    resourceType: "organization",
    resourceId: organizationId,
    after: { name: "Personal", billing_account_id: billingAccountId, primary_owner: userId },
    at: now,
  })
  const keyId = founder.brought?.id ?? ids.next("key")
  const fresh = founder.brought ? null : newKeyValue(keyId)
  const secretHash = founder.brought?.secretHash ?? fresh?.secretHash ?? new Uint8Array()
  await insertKey(sql, {
    id: keyId,
    organizationId,
    name: "first key",
    permissions,
    scope: "organization",
    createdBy: userId,
    secretHash,
    ...times,
  })
  const attended = founder.brought === null && founder.passwordHash === null
  const consoleLink = attended
    ? (await createOneTimeLink(sql, { userId, purpose: "sign_in" }, now)).link
    : null
  return { organizationId, userId, email, keyValue: fresh?.value ?? null, consoleLink }
}

interface NewAccount {
  readonly email: string
  readonly provider: string
}

/** At a real provider it starts without credit: it is provisioned there in the background, and a payment method is entered there. */
export async function openAccount(
  sql: Sql,
  { email, provider }: NewAccount,
  { now, ids }: { readonly now: Date; readonly ids: Ids },
): Promise<string> {
  if (provider === "local") {
    const local = await openLocalAccount(sql, email, { now, ids })
    await grantStartingCredit(sql, local, now)
    return local
  }
  const id = ids.next("ba")
  await insertBillingAccount(sql, { id, email, mode: "prepaid", provider, createdAt: now, updatedAt: now })
  return id
}

/** A prepaid account at the local provider, with a test card. Automatic refills are offered, and off until somebody wants them. */
async function openLocalAccount(
  sql: Sql,
  email: string,
  { now, ids }: { readonly now: Date; readonly ids: Ids },
): Promise<string> {
  const id = ids.next("ba")
  await insertBillingAccount(sql, {
    id,
    email,
    mode: "prepaid",
    provider: "local",
    providerCustomerId: `local_${id}`,
    paymentMethodId: "local_test_card",
    paymentMethodDescription: "Test card ending in 4242",
    autoRefillEnabled: false,
    autoRefillThresholdCents,
    autoRefillRechargeToCents,
    createdAt: now,
    updatedAt: now,
  })
  return id
}

async function grantStartingCredit(sql: Sql, billingAccountId: string, at: Date): Promise<void> {
  await appendLedger(sql, {
    billingAccountId,
    at,
    kind: "credit",
    amountTicks: fromCents(startingCreditCents),
    reference: startingCredit,
  })
}

function readBroughtKey(value: string): BroughtKey {
  const bearer = parseBearer(value)
  if (bearer?.kind !== "key")
    throw new RangeError(
      "Cannot use UMPIRE_BOOTSTRAP_KEY: it must have the form ump_<id>_<secret>, with a secret of 16 to 256 characters",
    )
  return { id: bearer.keyId, secretHash: hashSecret(bearer.secret) }
}
