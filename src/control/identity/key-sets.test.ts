import { expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { createKeySets } from "./key-sets.ts"
import { Refusal } from "./refusal.ts"

const issuer = "https://issuer.example/tenant"
const config = { type: "oidc", issuer_uri: issuer, allowed_audiences: ["a"], jwks: null } as const
const minuteMs = 60_000

/** An issuer that is only a function: what it publishes, and what was asked of it. */
function fakeIssuer() {
  const state = { kids: ["one"], away: false, asked: [] as string[] }
  const fetch = async (address: string): Promise<unknown> => {
    state.asked.push(address)
    if (state.away) throw new Refusal("the issuer's server cannot be reached")
    if (address.endsWith("openid-configuration")) return { issuer, jwks_uri: `${issuer}/keys` }
    return { keys: state.kids.map((kid) => ({ kty: "EC", crv: "P-256", kid, x: "AA", y: "AA" })) }
  }
  const clock = new ManualClock(0)
  const sets = createKeySets({ fetch }, clock)
  const find = async (kid: string | null) => await sets.find("wi:1", config, kid)
  const fetches = () => state.asked.filter((address) => address.endsWith("/keys")).length
  return { state, clock, find, fetches, sets }
}

test("keys are found by discovery once, and kept for ten minutes", async () => {
  const { find, fetches, clock, state } = fakeIssuer()
  expect((await find("one")).has("one")).toBe(true)
  expect(state.asked).toEqual([`${issuer}/.well-known/openid-configuration`, `${issuer}/keys`])
  clock.advance(10 * minuteMs - 1)
  await find("one")
  expect(fetches()).toBe(1)
  clock.advance(1)
  await find("one")
  expect(fetches()).toBe(2)
})

test("10,000 tokens with unknown kids cost one fetch per cooldown of 30 seconds", async () => {
  const { find, fetches, clock } = fakeIssuer()
  await find("one")
  for (let index = 0; index < 10_000; index++) {
    clock.advance(9)
    expect((await find(`nope-${index}`)).has(`nope-${index}`)).toBe(false)
  }
  // 90 seconds have passed: the first fetch, and one in each cooldown.
  expect(fetches()).toBeGreaterThan(1)
  expect(fetches()).toBeLessThanOrEqual(4)
  const before = fetches()
  await Promise.all(Array.from({ length: 1000 }, (_, index) => find(`more-${index}`)))
  expect(fetches() - before).toBeLessThanOrEqual(1)
})

test("a key that the issuer changes to is found as soon as a token names it; the next change after the cooldown", async () => {
  const { find, clock, state } = fakeIssuer()
  await find("one")
  state.kids = ["two"]
  const set = await find("two")
  expect([set.has("two"), set.has("one")]).toEqual([true, false])
  state.kids = ["three"]
  clock.advance(29_999)
  expect((await find("three")).has("three")).toBe(false)
  clock.advance(1)
  expect((await find("three")).has("three")).toBe(true)
})

test("those who ask at once share one fetch", async () => {
  const { find, fetches } = fakeIssuer()
  await Promise.all(Array.from({ length: 100 }, () => find("one")))
  expect(fetches()).toBe(1)
})

test("known keys outlive an issuer that is away for a day, and no longer", async () => {
  const { find, clock, state } = fakeIssuer()
  await find("one")
  state.away = true
  clock.advance(24 * 60 * minuteMs - 1)
  expect((await find("one")).has("one")).toBe(true)
  clock.advance(30_001)
  await expect(find("one")).rejects.toThrow("cannot be reached")
})

test("an issuer that fails is not asked again within the cooldown", async () => {
  const { find, clock, state } = fakeIssuer()
  state.away = true
  for (let index = 0; index < 50; index++) await expect(find("one")).rejects.toThrow("cannot be reached")
  expect(state.asked).toHaveLength(1)
  state.away = false
  clock.advance(30_000)
  expect((await find("one")).has("one")).toBe(true)
})

test("a static key set is never fetched", async () => {
  const { sets, state } = fakeIssuer()
  const jwks = { keys: [{ kty: "EC", crv: "P-256", kid: "own", x: "AA", y: "AA" }] }
  const set = await sets.find("wi:2", { ...config, jwks }, "nope")
  expect([set.has("own"), state.asked.length]).toEqual([true, 0])
})
