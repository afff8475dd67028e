import { expect, test } from "vitest"
import { hashPassword, passwordMatches } from "./passwords.ts"

test("a password matches its own hash, and nobody's matches none", async () => {
  const hash = await hashPassword("correct horse")
  expect(await passwordMatches(hash, "correct horse")).toBe(true)
  expect(await passwordMatches(hash, "correct house")).toBe(false)
  expect(await passwordMatches(null, "a password without a user")).toBe(false)
})

/** So many from one network that one works and the others wait. */
const flood = (count: number, network: number, done: string[]): Promise<void>[] =>
  Array.from({ length: count }, async (_, at) => {
    const name = `${network}:${at}`
    await hashPassword(name, `192.0.2.${network}`).then(
      () => done.push(name),
      ({ code }: { code: string }) => done.push(`${name} ${code}`),
    )
  })

test("16 passwords of one network wait, one more is refused at once, and another network's turn comes next", async () => {
  const done: string[] = []
  const first = flood(17, 1, done)
  await expect(hashPassword("one more", "192.0.2.1")).rejects.toMatchObject({
    code: "rate_limited",
    retryAfterMs: 1000,
  })
  await Promise.all(flood(1, 2, done))
  // They end in their order, so one at a time: one was at work already.
  expect(done).toEqual(["1:0", "2:0"])
  await Promise.all(first)
  expect(done.slice(2)).toEqual(Array.from({ length: 16 }, (_, at) => `1:${at + 1}`))
})

test("of 64 that wait the latest of a flood gives way to another network, and of as many networks none does", async () => {
  const done: string[] = []
  const floods = [flood(17, 1, done), ...[2, 3, 4].map((network) => flood(16, network, done))].flat()
  await Promise.all(flood(1, 5, done))
  expect(done[0]).toBe("1:16 overloaded")
  expect(done.indexOf("5:0")).toBeLessThan(7)
  await Promise.all(floods)
  expect(done.filter((one) => one.endsWith("overloaded"))).toEqual(["1:16 overloaded"])

  const single = Array.from({ length: 65 }, (_, at) => flood(1, 10 + at, done)).flat()
  await expect(hashPassword("one more", "192.0.2.200")).rejects.toMatchObject({ code: "overloaded" })
  await Promise.all(single)
})
