import { afterAll, beforeAll, expect, test } from "vitest"
import { openTestDatabase } from "../../../test/database.ts"
import { type Clock } from "../../base/clock.ts"
import { ManualClock } from "../../../test/manual-clock.ts"
import { createIds } from "../../base/ids.ts"
import { insertBillingAccount } from "../../store/billing-accounts.ts"
import { identityProviders, listSigningKeys } from "../../store/identity-providers.ts"
import { insertOrganization } from "../../store/organizations.ts"
import type { Database } from "../../store/sql.ts"
import {
  type AccessTokens,
  createAccessTokens,
  type KnownProvider,
  createKnownProviders,
} from "./access-tokens.ts"
import { createSigningKeys } from "./signing-keys.ts"

const start = Date.parse("2026-11-15T00:00:00Z")
const hourMs = 3_600_000
let database: Database
let known: KnownProvider

beforeAll(async () => {
  database = await openTestDatabase()
  const ids = createIds(new ManualClock(start))
  const times = { createdAt: new Date(start), updatedAt: new Date(start) }
  const billingAccountId = ids.next("ba")
  await insertBillingAccount(database, {
    id: billingAccountId,
    email: "a@b.example",
    mode: "prepaid",
    provider: "local",
    ...times,
  })
  const organization = await insertOrganization(database, {
    id: ids.next("org"),
    name: "Acme",
    billingAccountId,
    isPersonal: false,
    rateLimitPerMinute: 60,
    ...times,
  })
  const row = { id: ids.next("wi"), organizationId: organization.id, ...times }
  const provider = await identityProviders.insert(database, row, {
    name: "ci",
    active: true,
    config: { type: "oidc", issuer_uri: "https://a.example", allowed_audiences: ["a"], jwks: null },
    attributeTransformations: {},
    authorizationRules: [{ condition: "true", permissions: ["inference"] }],
  })
  known = { provider, organization }
})
afterAll(async () => await database.close())

/** A gateway with keys and caches of its own, which hears of nothing. */
function gateway(clock: Clock): AccessTokens & { keys: ReturnType<typeof createSigningKeys> } {
  const keys = createSigningKeys(database, clock)
  const providers = createKnownProviders(database, clock)
  return { keys, ...createAccessTokens({ clock, keys, providers, issuer: "https://umpire.test" }) }
}

const grant = (lifetimeSeconds = 900, attributes: Record<string, unknown> = {}) => ({
  known,
  subject: "workload",
  attributes,
  permissions: ["inference"] as const,
  lifetimeSeconds,
})

test("a token of one gateway is accepted by another, whose keys and caches are its own", async () => {
  const clock = new ManualClock(start)
  const token = await gateway(clock).issue(grant())
  expect(await gateway(clock).authenticate(token)).toEqual({
    kind: "workload",
    id: known.provider.id,
    userId: null,
    organizationId: known.organization.id,
    role: "member",
    permissions: ["inference"],
    rateLimit: { requestsPerMinute: 60, burst: 60 },
  })
})

test("a token works until the second in which it expires", async () => {
  const clock = new ManualClock(start)
  const one = gateway(clock)
  const token = await one.issue(grant(300))
  clock.advance(299_999)
  expect(await one.authenticate(token)).not.toBeNull()
  clock.advance(1)
  expect(await one.authenticate(token)).toBeNull()
})

test("a gateway that hears of nothing stops tokens of a changed provider within 30 seconds", async () => {
  const clock = new ManualClock(start)
  const [one, deaf] = [gateway(clock), gateway(clock)]
  const token = await one.issue(grant(3600))
  expect(await deaf.authenticate(token)).not.toBeNull()
  const changed = await identityProviders.update(database, known.provider.id, { updatedAt: new Date(start) })
  clock.advance(30_000)
  expect(await deaf.authenticate(token)).toBeNull()
  known = { ...known, provider: changed ?? known.provider }
})

test("a process signs with a new key every day, and tokens of the old one stay good", async () => {
  const clock = new ManualClock(start + 100 * hourMs)
  const one = gateway(clock)
  const old = await one.keys.own()
  clock.advance(23.9 * hourMs)
  const token = await one.issue(grant(3600))
  expect((await one.keys.own()).id).toBe(old.id)
  clock.advance(0.2 * hourMs)
  expect((await one.keys.own()).id).not.toBe(old.id)
  expect(await one.authenticate(token)).not.toBeNull()
  expect((await one.keys.published()).map(({ kid }) => kid)).toContain(old.id)
})

test("only public halves are stored, and they go when the last token must have expired", async () => {
  const clock = new ManualClock(start + 1000 * hourMs)
  const one = gateway(clock)
  const { id } = await one.keys.own()
  const stored = async () => await listSigningKeys(database, new Date(clock.nowMs()))
  const mine = (await stored()).find((key) => key.id === id)
  expect(Object.keys(mine?.publicJwk ?? {}).toSorted()).toEqual(["alg", "crv", "kid", "kty", "use", "x"])
  clock.advance(25 * hourMs)
  expect((await stored()).some((key) => key.id === id)).toBe(true)
  clock.advance(hourMs)
  expect((await stored()).some((key) => key.id === id)).toBe(false)
})

test("attributes that make a token too long to send are refused", async () => {
  const one = gateway(new ManualClock(start))
  await expect(one.issue(grant(900, { big: "x".repeat(8000) }))).rejects.toThrow("more than 8192 characters")
})
