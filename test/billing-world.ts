/** The billing endpoints on a real HTTP server in this process, with a clock that a test can move. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { noProxies } from "../src/base/addresses.ts"
import { createCatalog, type Model } from "../src/base/catalog.ts"
import { ManualClock } from "./manual-clock.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { createIds, type Ids } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import type { Table } from "../src/contract/table.ts"
import { billingStatus } from "../src/control/billing/accounts.ts"
import { billingHandlers } from "../src/control/billing/handlers.ts"
import type { BillingDeps } from "../src/control/billing/parts.ts"
import { auditLogHandlers } from "../src/control/audit-log.ts"
import { permissions } from "../src/contract/access.ts"
import type { ControlDeps } from "../src/control/audited-change.ts"
import { firstStart, openAccount } from "../src/control/first-start.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { modelHandlers } from "../src/control/models.ts"
import { createLocalProvider, type PaymentProvider } from "../src/control/payments/provider.ts"
import { newKeyValue, openLastUsed, openPrincipals } from "../src/control/principals.ts"
import { createHttp } from "../src/server/http.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { type BillingAccountChanges, updateBillingAccount } from "../src/store/billing-accounts.ts"
import { insertKey } from "../src/store/keys.ts"
import { insertOrganization } from "../src/store/organizations.ts"
import { appendLedger } from "../src/store/ledger.ts"
import type { Database } from "../src/store/sql.ts"
import { digestRecords } from "../src/store/journal/digest.ts"
import { applyUsage, findJournalPosition } from "../src/store/usage.ts"
import { openTestDatabase } from "./database.ts"
import { sequenceRecord } from "./sequence-record.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

export const startMs = Date.UTC(2026, 4, 10, 12)
export const ticksPerCent = 100_000_000n

export interface BillingWorld {
  readonly url: string
  readonly database: Database
  readonly clock: ManualClock
  readonly ids: Ids
  readonly deps: BillingDeps
  /** Of the organization that the present test has for itself. */
  accountId: string
  organizationId: string
  /** A new organization with an account of its own and a key, at the starting time; earlier ones are left in peace. */
  renew(): Promise<void>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** The account as a test wants it. */
  set(changes: BillingAccountChanges): Promise<void>
  /** Usage that a gateway reported, at the present time unless told. */
  use(
    ticks: bigint,
    given?: { readonly model?: string; readonly atMs?: number; readonly mode?: "prepaid" | "postpaid" },
  ): Promise<void>
  /** Brings the balance to this. */
  balance(ticks: bigint): Promise<void>
  close(): Promise<void>
}

export interface Answer {
  readonly status: number
  // The tests look into it; what it is, is the point of the test.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly error: any
  readonly bytes: Buffer
  readonly headers: Headers
}

const model: Model = {
  sku: "umpire-decide",
  kind: "generation",
  description: "",
  developer: null,
  releaseDate: null,
  public: true,
  enabled: true,
  prices: {
    inputTokenTicks: 200n,
    cachedInputTokenTicks: 100n,
    outputTokenTicks: 800n,
    millisecondTicks: 0n,
  },
  contextTokensMax: 4096,
  quantization: "Q8_0",
  file: "",
}

export async function openBillingWorld(providers: readonly PaymentProvider[] = []): Promise<BillingWorld> {
  const database = await openTestDatabase()
  const clock = new ManualClock(startMs)
  const ids = createIds(clock)
  await firstStart(database, { key: bootstrapKey }, { clock, ids })
  const lastUsed = openLastUsed(database, silentLog)
  const organizations = await openOrganizations(database, clock, 0)
  const principals = await openPrincipals({ organizations, database, clock, lastUsed })
  const control: ControlDeps = { database, clock, ids, invalidate: (change) => principals.invalidate(change) }
  const state = { url: "" }
  const deps: BillingDeps = {
    ...control,
    providers: new Map([createLocalProvider(), ...providers].map((provider) => [provider.name, provider])),
    log: silentLog,
    settle: async () => undefined,
    spendByTag: async () => [],
    publicUrl: () => state.url,
    seller: {
      name: "Umpire Ltd",
      addressLines: ["1 Example Street", "Exampleton"],
      taxNumber: "XX123",
      tax: { name: "VAT", percent: 25 },
    },
  }
  const http = createHttp({
    // Only these endpoints are called.
    handlers: {
      ...billingHandlers(deps),
      ...modelHandlers({
        ...control,
        catalog: createCatalog([model]),
        connector: { describe: () => ({ decides: null, calibrated: null, accuracy: null }) },
        about: () => null,
        billingStatus: (id) => billingStatus(control, id),
      }),
      ...auditLogHandlers(control),
    } as unknown as Handlers<Table>,
    metrics: new Metrics(),
    gate: principals,
    idempotency: createIdempotencyStore({ ...control, cipher: createContentCipher([]) }),
    limiter: createRequestLimiter({ requestsPerMinute: 1_000_000, burst: 1_000_000 }),
    clock,
    ids,
    log: silentLog,
    trustedProxies: noProxies,
    requestTimeoutMs: 60_000,
  })
  state.url = await http.listen("127.0.0.1", 0)
  const invalidate = (): void => principals.invalidate({ table: "organizations", id: "" })
  let key = bootstrapKey
  const world: BillingWorld = {
    url: state.url,
    database,
    clock,
    ids,
    deps,
    accountId: "",
    organizationId: "",
    renew: async () => {
      clock.advance(startMs - clock.nowMs())
      await retireAccounts(database)
      const made = await createCustomer(database, ids)
      key = made.key
      world.accountId = made.accountId
      world.organizationId = made.organizationId
      invalidate()
    },
    call: async (method, path, body, headers = {}) =>
      await call(`${state.url}/v1${path.replace(":account", world.accountId)}`, key, method, body, headers),
    set: async (changes) => {
      await updateBillingAccount(database, world.accountId, changes, new Date(clock.nowMs()))
      invalidate()
    },
    use: async (ticks, given = {}) =>
      await use(database, clock, ids, {
        accountId: world.accountId,
        organizationId: world.organizationId,
        ticks,
        ...given,
      }),
    balance: async (ticks) => await setBalance(database, clock, ids, world.accountId, ticks),
    close: async () => {
      await http.close(0)
      await principals.close()
      await lastUsed.close()
      await database.close()
    },
  }
  await world.renew()
  return world
}

/** Tasks look at every account: those of earlier tests must not be due for anything. */
async function retireAccounts(database: Database): Promise<void> {
  await database.query("UPDATE billing_accounts SET auto_refill_enabled = false")
  await database.query("UPDATE purchases SET check_at = NULL")
  await database.query("UPDATE invoices SET status = 'paid'")
  await database.query(
    `INSERT INTO invoiced_months SELECT id, '2100-01-01' FROM billing_accounts
     ON CONFLICT (billing_account_id) DO UPDATE SET month = excluded.month`,
  )
}

async function createCustomer(
  database: Database,
  ids: Ids,
): Promise<{ key: string; accountId: string; organizationId: string }> {
  const now = new Date(startMs)
  const times = { createdAt: now, updatedAt: now }
  const [organizationId, keyId] = [ids.next("org"), ids.next("key")]
  const { value: key, secretHash } = newKeyValue(keyId)
  const accountId = await openAccount(
    database,
    { email: "owner@example.com", provider: "local" },
    { now, ids },
  )
  await insertOrganization(database, {
    id: organizationId,
    name: "Customer",
    billingAccountId: accountId,
    isPersonal: false,
    ...times,
  })
  await insertKey(database, {
    id: keyId,
    organizationId,
    name: "k",
    permissions,
    scope: "organization",
    secretHash,
    ...times,
  })
  return { key, accountId, organizationId }
}

async function call(
  url: string,
  key: string,
  method: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(headers["stripe-signature"] === undefined ? { authorization: `Bearer ${key}` } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const json = response.headers.get("content-type")?.startsWith("application/json")
    ? JSON.parse(bytes.toString())
    : null
  return { status: response.status, data: json?.data, error: json?.error, bytes, headers: response.headers }
}

interface Use {
  readonly accountId: string
  readonly organizationId: string
  readonly ticks: bigint
  readonly model?: string
  readonly atMs?: number
  readonly mode?: "prepaid" | "postpaid"
}

async function use(database: Database, clock: ManualClock, ids: Ids, given: Use): Promise<void> {
  const gatewayId = "gw_test"
  const from = await findJournalPosition(database, gatewayId)
  const record = sequenceRecord({
    seq_id: ids.next("seq"),
    timestamp: given.atMs ?? clock.nowMs(),
    organization_id: given.organizationId,
    billing_account_id: given.accountId,
    billing_mode: given.mode ?? null,
    model: given.model ?? "umpire-decide",
    cost_ticks: String(given.ticks),
  })
  const next = { segment: from.segment + 1, offset: 0 }
  const now = new Date(clock.nowMs())
  const batch = {
    gatewayId,
    from,
    next,
    usage: digestRecords([record]),
    now,
  }
  await database.transaction((sql) => applyUsage(sql, batch))
}

async function setBalance(
  database: Database,
  clock: ManualClock,
  ids: Ids,
  accountId: string,
  ticks: bigint,
): Promise<void> {
  const [found] = await row({ balance_ticks: column.bigint }).all(
    database,
  )`SELECT balance_ticks FROM billing_accounts WHERE id = ${accountId}`
  const amountTicks = ticks - (found?.balance_ticks ?? 0n)
  if (amountTicks === 0n) return
  const at = new Date(clock.nowMs())
  await appendLedger(database, {
    billingAccountId: accountId,
    at,
    kind: "adjustment",
    amountTicks,
    reference: ids.next("adj"),
  })
}
