import { expect, test } from "vitest"
import { ByteBudget, type ByteLease, defaultBudgetBytes } from "./byte-budget.ts"

const mebibyte = 1024 * 1024

function leaseOf(budget: ByteBudget, holder: string): ByteLease {
  const lease = budget.lease()
  lease.holder = holder
  return lease
}

const refused = expect.objectContaining({ code: "over_capacity", retryAfterMs: 1_000 })

test("an organization may hold half of what is for large bodies, and not a byte more", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const lease = leaseOf(budget, "org_1")
  lease.take(7 * mebibyte)
  expect(() => leaseOf(budget, "org_1").take(100 * 1024)).toThrow(refused)
  expect(() => lease.take(1)).toThrow(refused)
  leaseOf(budget, "org_2").take(7 * mebibyte)
  lease.close()
  leaseOf(budget, "org_1").take(7 * mebibyte)
})

test("small bodies have room that large ones cannot take, up to the whole budget", () => {
  const budget = new ByteBudget(16 * mebibyte)
  leaseOf(budget, "org_1").take(7 * mebibyte)
  leaseOf(budget, "org_2").take(7 * mebibyte)
  expect(() => leaseOf(budget, "org_3").take(64 * 1024 + 1)).toThrow(refused)
  for (let at = 0; at < 32; at++) leaseOf(budget, "org_3").take(64 * 1024)
  expect(budget.heldBytes).toBe(budget.bytesMax)
  expect(() => leaseOf(budget, "org_3").take(1)).toThrow(refused)
})

test("what is held in all grows while there is room, and is as much as before where there is none", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const lease = leaseOf(budget, "org_1")
  expect([lease.resize(7 * mebibyte), lease.resize(7 * mebibyte + 1)]).toEqual([true, false])
  expect(budget.heldBytes).toBe(7 * mebibyte)
  expect(lease.resize(mebibyte)).toBe(true)
  expect(budget.heldBytes).toBe(mebibyte)
})

test("a body that is announced has its room from its organization, and takes none from others before it comes", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const lease = leaseOf(budget, "org_1")
  lease.announce(5 * mebibyte)
  expect(budget.heldBytes).toBe(0)
  expect(() => leaseOf(budget, "org_1").announce(2 * mebibyte + 1)).toThrow(refused)
  leaseOf(budget, "org_1").announce(2 * mebibyte)
  expect(() => leaseOf(budget, "org_1").take(64 * 1024 + 1)).toThrow(refused)
  leaseOf(budget, "org_2").take(7 * mebibyte)
  lease.take(5 * mebibyte)
  expect(budget.heldBytes).toBe(12 * mebibyte)
  lease.close()
  leaseOf(budget, "org_1").announce(5 * mebibyte)
})

test("a body that becomes larger than announced is counted as it is", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const lease = leaseOf(budget, "org_1")
  lease.announce(mebibyte)
  lease.take(7 * mebibyte)
  expect(() => lease.take(1)).toThrow(refused)
  lease.close()
  expect(budget.heldBytes).toBe(0)
  leaseOf(budget, "org_1").take(7 * mebibyte)
})

test("an answer is never refused, but counts against the bodies that follow", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const answer = leaseOf(budget, "org_1")
  answer.add(20 * mebibyte)
  expect(() => leaseOf(budget, "org_2").take(1)).toThrow(refused)
  answer.close()
  answer.add(1)
  expect(budget.heldBytes).toBe(0)
})

test("the default has room for the largest body", () => {
  expect((defaultBudgetBytes() * 7) / 16).toBeGreaterThanOrEqual(32 * mebibyte)
})
