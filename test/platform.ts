/** The Platform API in this process, over HTTP, on a database of the caller's choice; inference is left out. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { createHash } from "node:crypto"
import { noProxies, parseTrustedProxies } from "../src/base/addresses.ts"
import { createCatalog, type Model, type Region } from "../src/base/catalog.ts"
import { systemClock } from "../src/base/clock.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { createIds, newSecret } from "../src/base/ids.ts"
import { type Log, silentLog } from "../src/base/log.ts"
import { type RateLimits, RateLimiter } from "../src/base/rate-limiter.ts"
import type { Permission, Principal, Role } from "../src/contract/access.ts"
import { Document, type Endpoint, type Handlers } from "../src/contract/endpoint.ts"
import { openapi } from "../src/contract/openapi.ts"
import { type Table, table } from "../src/contract/table.ts"
import type { ControlDeps } from "../src/control/audited-change.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { type PlatformDeps, platformHandlers } from "../src/control/platform.ts"
import { newKeyValue, openLastUsed, openPrincipals } from "../src/control/principals.ts"
import { createHttp } from "../src/server/http.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { insertBillingAccount } from "../src/store/billing-accounts.ts"
import { contentKeyBytes, createContentCipher } from "../src/store/content/cipher.ts"
import { insertKey } from "../src/store/keys.ts"
import { insertMembership, insertOrganization } from "../src/store/organizations.ts"
import { insertSession } from "../src/store/sessions.ts"
import type { Database } from "../src/store/sql.ts"
import { insertUser } from "../src/store/users.ts"

/** Of this installation. */
export const contentKey = Buffer.alloc(contentKeyBytes, 7)
export const platformCipher = createContentCipher([contentKey])

/** Of servers of others, none of which is asked: each answers. */
const connector: PlatformDeps["connector"] = {
  probe: async () => "schema",
  sealKey: () => "sealed:",
  refresh: async () => undefined,
  describe: () => ({ decides: null, calibrated: null, accuracy: null }),
  whyUndecided: async () => null,
  check: async () => ({
    state: "estimate",
    done: 0,
    rows: 200,
    cost_usd: "1",
    method: "schema",
    accuracy: null,
    left_out: [],
    problem: null,
  }),
}

const dayMs = 24 * 3_600_000
const requestsPerMinute = 1_000_000

const regions: readonly Region[] = [
  { id: "paris", country: "FR", latitude: 48.9, longitude: 2.4 },
  { id: "lyon", country: "FR", latitude: 45.8, longitude: 4.8 },
  { id: "oslo", country: "NO", latitude: 59.9, longitude: 10.8 },
]

interface PlatformOptions {
  readonly log?: Log
  /** As `server.trusted_proxies`. */
  readonly trustedProxies?: string
  readonly deps?: Partial<PlatformDeps>
  /** What requests and attempts to sign in are counted by; in memory unless told. */
  readonly rateLimits?: RateLimits
  /** How long a repeated request waits for the first; as the product does unless told. */
  readonly repeatWaitMs?: number
}

export interface Answer {
  readonly status: number
  // Tests look into bodies of every shape; what is not there fails their expectations.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  readonly headers: Headers
}

export interface Sent {
  readonly bearer?: string | null
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Platform {
  readonly url: string
  readonly database: Database
  readonly ids: ReturnType<typeof createIds>
  readonly invalidate: ControlDeps["invalidate"]
  flushLastUsed(): Promise<void>
  send(method: string, path: string, sent?: Sent): Promise<Answer>
  close(): Promise<void>
}

export async function startPlatform(database: Database, options: PlatformOptions = {}): Promise<Platform> {
  const clock = systemClock
  const ids = createIds(clock)
  const log = options.log ?? silentLog
  const lastUsed = openLastUsed(database, log)
  const organizations = await openOrganizations(database, clock, 0)
  const principals = await openPrincipals({
    organizations,
    database,
    clock,
    lastUsed,
    workload: readWorkloadToken,
  })
  const control: ControlDeps = { database, clock, ids, invalidate: (change) => principals.invalidate(change) }
  const state: { url: string; openapi?: ReturnType<typeof openapi> } = { url: "" }
  const rateLimits = options.rateLimits ?? new RateLimiter(clock)
  const http = createHttp({
    handlers: {
      ...standIns(),
      ...platformHandlers({
        ...control,
        catalog: createCatalog([
          model("open"),
          model("closed", { public: false }),
          model("off", { enabled: false }),
        ]),
        connector,
        about: () => null,
        regions,
        placement: (regionId) => ({ home: regionId === "paris", models: [] }),
        rateLimit: { requestsPerMinute, burst: requestsPerMinute },
        rateLimits,
        secureCookies: false,
        paymentProvider: "local",
        singleSignOn: null,
        billingStatus: async () => null,
        publicUrl: () => state.url,
        allowPrivateWebhooks: false,
        sendMail: null,
        email: { enabled: false, recipients: "members" },
        content: {
          cipher: platformCipher,
          dropped: () => [],
          settle: async () => undefined,
        },
        ...options.deps,
      }),
      getOpenapi: async () =>
        (state.openapi ??= openapi(table, { title: "Umpire", version: "0", description: "Test" })),
    },
    metrics: new Metrics(),
    gate: principals,
    idempotency: createIdempotencyStore({
      ...control,
      cipher: platformCipher,
      ...(options.repeatWaitMs === undefined ? {} : { waitMsMax: options.repeatWaitMs }),
    }),
    limiter: createRequestLimiter({ requestsPerMinute, burst: requestsPerMinute }, rateLimits),
    clock,
    ids,
    log,
    trustedProxies: parseTrustedProxies(options.trustedProxies ?? "") ?? noProxies,
    requestTimeoutMs: 600_000,
  })
  state.url = await http.listen("127.0.0.1", 0)
  return {
    url: state.url,
    database,
    ids,
    invalidate: control.invalidate,
    flushLastUsed: () => lastUsed.flush(),
    send: async (method, path, sent = {}) => await send(state.url, method, path, sent),
    close: async () => {
      await http.close(1000)
      await principals.close()
      await lastUsed.close()
    },
  }
}

/** A database whose notifications are all lost: what is seen at once is then not seen because of them. */
export function deaf(database: Database): Database {
  return {
    query: async (text, values) => await database.query(text, values),
    transaction: async (work, options) => await database.transaction(work, options),
    script: async (text) => await database.script(text),
    listen: async () => async () => undefined,
    close: async () => await database.close(),
  }
}

/** For endpoints that other tests are about: a call that is let in gets a 200. */
function standIns(): Handlers<Table> {
  const entries = Object.entries<Endpoint>(table).map(([name, { produces }]) => [
    name,
    async () => (produces === undefined ? {} : new Document(Buffer.from("stand-in"))),
  ])
  // Each stand-in takes any call; what it answers is not looked at.
  return Object.fromEntries(entries) as Handlers<Table>
}

async function send(url: string, method: string, path: string, sent: Sent): Promise<Answer> {
  const hasBody = sent.body !== undefined
  const response = await fetch(url + path, {
    method,
    redirect: "manual",
    headers: {
      ...(hasBody ? { "content-type": "application/json" } : {}),
      ...(sent.bearer ? { authorization: `Bearer ${sent.bearer}` } : {}),
      ...sent.headers,
    },
    ...(hasBody ? { body: isRaw(sent.body) ? sent.body : JSON.stringify(sent.body) } : {}),
  })
  const text = await response.text()
  const isJson = /^application\/json(?:;|$)/.test(response.headers.get("content-type") ?? "")
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

/** Text and bytes go out as they are. */
function isRaw(body: unknown): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array
}

function model(sku: string, changes: Partial<Model> = {}): Model {
  return {
    sku,
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
    file: "none.gguf",
    ...changes,
  }
}

/** Stands in for the issuer of workload tokens: the token says whose it is and what it carries. */
export function workloadToken(organizationId: string, permissions: readonly Permission[]): string {
  return `${encodePart("workload")}.${encodePart(JSON.stringify({ organizationId, permissions }))}.${encodePart("signature")}`
}

const encodePart = (value: string): string => Buffer.from(value).toString("base64url")

async function readWorkloadToken(token: string): Promise<Principal | null> {
  const [head = "", body = ""] = token.split(".").map((part) => Buffer.from(part, "base64url").toString())
  if (head !== "workload") return null
  // Made by workloadToken above.
  const { organizationId, permissions } = JSON.parse(body) as {
    organizationId: string
    permissions: Permission[]
  }
  const id = "wi_test"
  return { kind: "workload", id, userId: null, organizationId, role: "member", permissions, rateLimit: null }
}

/** Adds people, organizations, keys and sessions to a database. */
export function seeder({ database, ids }: Pick<Platform, "database" | "ids">) {
  const now = new Date()
  const times = { createdAt: now, updatedAt: now }
  return {
    async user(email: string, passwordHash: string | null = null): Promise<string> {
      const id = ids.next("usr")
      await insertUser(database, { id, email, name: null, passwordHash, ...times })
      return id
    },
    async billingAccount(): Promise<string> {
      const id = ids.next("ba")
      await insertBillingAccount(database, {
        id,
        email: "billing@example.com",
        mode: "prepaid",
        provider: "local",
        ...times,
      })
      return id
    },
    async organization(name: string, billingAccountId: string, isPersonal = false): Promise<string> {
      const id = ids.next("org")
      await insertOrganization(database, { id, name, billingAccountId, isPersonal, ...times })
      return id
    },
    async member(organizationId: string, userId: string, role: Role): Promise<void> {
      await insertMembership(database, { organizationId, userId, role, ...times })
    },
    async session(userId: string, lifetimeMs = dayMs, idleMs = 0): Promise<string> {
      const secret = newSecret()
      await insertSession(database, {
        id: ids.next("ses"),
        tokenHash: new Uint8Array(createHash("sha256").update(secret).digest()),
        userId,
        createdAt: now,
        lastSeenAt: new Date(now.getTime() - idleMs),
        expiresAt: new Date(now.getTime() + lifetimeMs),
      })
      return `ums_${secret}`
    },
    /** A user-scoped key when a user is named. */
    async key(
      organizationId: string,
      permissions: readonly Permission[],
      userId: string | null = null,
      changes: { readonly expiresAt?: Date } = {},
    ): Promise<{ id: string; value: string }> {
      const id = ids.next("key")
      const { value, secretHash } = newKeyValue(id)
      await insertKey(database, {
        id,
        organizationId,
        name: "seeded",
        permissions,
        scope: userId === null ? "organization" : "user",
        userId,
        createdBy: userId,
        secretHash,
        ...changes,
        ...times,
      })
      return { id, value }
    },
  }
}
