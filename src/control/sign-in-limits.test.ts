import { expect, test } from "vitest"
import { RateLimiter } from "../base/rate-limiter.ts"
import { createSignInLimits } from "./sign-in-limits.ts"

const clock = { nowMs: () => 0, monotonicMs: () => 0 }
const refused = { code: "rate_limited" }
const known = async (): Promise<boolean> => true
const unknown = async (): Promise<boolean> => false

test("an account has 50 guesses from all addresses together, not one more, and its own addresses still more", async () => {
  const limits = createSignInLimits(new RateLimiter(clock))
  for (let at = 0; at < 50; at++) await limits.countPassword("ann@example.com", `192.0.2.${at}`, unknown)
  await expect(limits.countPassword("Ann@example.com", "192.0.2.100", unknown)).rejects.toMatchObject(refused)
  await limits.countPassword("ann@example.com", "198.51.100.7", known)
  await limits.countPassword("bob@example.com", "192.0.2.100", unknown)
})

test("an address that is known has ten guesses of its own, not one more", async () => {
  const limits = createSignInLimits(new RateLimiter(clock))
  for (let at = 0; at < 10; at++) await limits.countPassword("ann@example.com", "192.0.2.1", known)
  await expect(limits.countPassword("ann@example.com", "192.0.2.1", known)).rejects.toMatchObject(refused)
})
