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

test("a body is checked before it is read, and counted as it comes", () => {
  const budget = new ByteBudget(16 * mebibyte)
  const lease = leaseOf(budget, "org_1")
  lease.check(7 * mebibyte)
  expect(budget.heldBytes).toBe(0)
  expect(() => lease.check(7 * mebibyte + 1)).toThrow(refused)
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
