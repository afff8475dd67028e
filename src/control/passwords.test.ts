import { expect, test } from "vitest"
import { hashPassword, passwordMatches } from "./sessions.ts"

test("a password matches its own hash, and nobody's matches none", async () => {
  const hash = await hashPassword("correct horse")
  expect(await passwordMatches(hash, "correct horse")).toBe(true)
  expect(await passwordMatches(hash, "correct house")).toBe(false)
  expect(await passwordMatches(null, "a password without a user")).toBe(false)
})

test("64 passwords wait for one another, one more is refused at once, and there is room again afterwards", async () => {
  let done = 0
  const checks = Array.from({ length: 64 }, async (_, at) => {
    await hashPassword(String(at))
    // They end in their order, so one at a time.
    expect(done++).toBe(at)
  })
  await expect(hashPassword("one more")).rejects.toMatchObject({ code: "overloaded", retryAfterMs: 1000 })
  expect(done).toBe(0)
  await Promise.all(checks)
  await hashPassword("one more")
})
