import { expect, test } from "vitest"
import { EvidenceCache } from "./evidence-cache.ts"
import { FAKE_TOKEN_BYTES, FakeGraph } from "../../../test/fake-graph.ts"

const evidence = (count: number, value = 1): Int32Array => new Int32Array(count).fill(value)

function setUp(tokensMax: number) {
  const cache = new EvidenceCache(new FakeGraph(), tokensMax * FAKE_TOKEN_BYTES)
  const use = (organizationId: string, tokens: Int32Array): boolean => {
    const held = cache.hold(organizationId, tokens)
    const isKnown = held.tokensRead > 0
    held.tokensRead = tokens.length
    cache.release(held)
    return isKnown
  }
  return { cache, use }
}

test("kept evidence is found by its own organization and by its exact tokens", () => {
  const { use } = setUp(1000)
  expect(use("a", evidence(10))).toBe(false)
  expect(use("a", evidence(10))).toBe(true)
  expect(use("a", evidence(11))).toBe(false)
  expect(use("a", evidence(10, 2))).toBe(false)
  expect(use("b", evidence(10))).toBe(false)
})

test("the least recently used makes room, and what is held never does", () => {
  const { cache, use } = setUp(30)
  const held = cache.hold("a", evidence(10, 1))
  use("a", evidence(10, 2))
  use("b", evidence(10, 3))
  use("a", evidence(10, 2))
  use("a", evidence(10, 4))
  expect(cache.bytes).toBe(30 * FAKE_TOKEN_BYTES)
  expect(use("a", evidence(10, 2))).toBe(true)
  expect(use("b", evidence(10, 3))).toBe(false)
  cache.release(held)
})

test("evidence of exactly the bound is kept, one token more is not", () => {
  const { cache, use } = setUp(100)
  use("a", evidence(100))
  expect(cache.bytes).toBe(100 * FAKE_TOKEN_BYTES)
  use("a", evidence(101))
  expect(cache.bytes).toBe(0)
})

test("one organization keeps at most 64 pieces of evidence", () => {
  const { cache, use } = setUp(1000)
  for (let value = 1; value <= 65; value++) use("a", evidence(1, value))
  expect(cache.bytes).toBe(64 * FAKE_TOKEN_BYTES)
})
