/** Limits hold over all gateways on one PostgreSQL, and each gateway keeps to its share without it. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { hashPassword } from "../src/control/passwords.ts"
import { purgeRateBuckets } from "../src/store/rate-buckets.ts"
import { seeder } from "./platform.ts"
import { startPostgres, stopPostgres } from "./postgres.ts"
import {
  type LimitedGateways,
  burst,
  keepsTheLimit,
  lease,
  limitedKey,
  overload,
  requestsPerMinute,
  startLimitedGateways,
} from "./rate-limits.ts"
import { column, row } from "../src/store/rows.ts"

let folder: string
let server: Awaited<ReturnType<typeof startPostgres>>
let limited: LimitedGateways

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "umpire-limits-"))
  server = await startPostgres(folder)
  limited = await startLimitedGateways(server.url)
})

afterAll(async () => {
  await limited.close()
  await stopPostgres(server)
  await rm(folder, { recursive: true })
})

test("at ten times the limit over two gateways no more than the limit and one lease pass", async () => {
  expect(lease).toBe(requestsPerMinute / 20)
  await keepsTheLimit(limited, 4_000)
})

test("wrong passwords are counted together: the eleventh is refused at either gateway, one lease later at most", async () => {
  const seed = seeder(limited.gateways[0])
  await seed.user("both@example.com", await hashPassword("the right password"))
  const guess = async (index: number, password = "a wrong one"): Promise<number> => {
    const gateway = limited.gateways[index % 2] ?? limited.gateways[0]
    const body = { email: "both@example.com", password }
    return (await gateway.send("POST", "/v1/session", { body })).status
  }
  const statuses: number[] = []
  for (let attempt = 0; attempt < 14; attempt++) statuses.push(await guess(attempt))
  const counted = statuses.filter((status) => status === 401).length
  expect(counted).toBeGreaterThanOrEqual(10)
  expect(counted).toBeLessThanOrEqual(11)
  expect([await guess(0, "the right password"), await guess(1, "the right password")]).toEqual([429, 429])
})

test("a right password at one gateway starts the count again at the other", async () => {
  const password = "the right password"
  const email = "again@example.com"
  await seeder(limited.gateways[0]).user(email, await hashPassword(password))
  const attempt = async (index: 0 | 1, given: string): Promise<number> =>
    (await limited.gateways[index].send("POST", "/v1/session", { body: { email, password: given } })).status
  for (let count = 0; count < 9; count++) expect(await attempt(0, "wrong")).toBe(401)
  expect(await attempt(0, password)).toBe(200)
  for (let count = 0; count < 8; count++) expect(await attempt(1, "wrong")).toBe(401)
})

test("buckets in which nothing counts any more are removed, and others stay", async () => {
  const { database } = limited
  await database.query(
    "INSERT INTO rate_buckets (key, arrival_ms, interval_ms) VALUES ('old', 0, 1), ('new', 1e15, 1)",
  )
  await purgeRateBuckets(database, 1_000)
  const rows = await row({ key: column.text }).all(
    database,
  )`SELECT key FROM rate_buckets WHERE key IN ('old', 'new')`
  expect(rows).toEqual([{ key: "new" }])
})

test("without the database the gateways go on, with half of the limit each, and meet again after it", async () => {
  await limited.meet()
  const bearer = await limitedKey(limited)
  await overload(limited.gateways, bearer, 1_500)
  const startedMs = performance.now()
  await stopPostgres(server, "SIGKILL")
  // Until both have noticed, each may have let through its part of the lease.
  await overload(limited.gateways, bearer, 1_000)
  const [one] = limited.gateways
  const alone = await overload([one], bearer, 3_000)
  expect(alone.passed).toBeGreaterThan(0)
  // Since the database is gone, and half of the burst, which a slow machine may not have used before.
  const seconds = (performance.now() - startedMs) / 1000
  expect(alone.passed).toBeLessThanOrEqual((requestsPerMinute / 60 / 2) * seconds + burst / 2 + lease)
  server = await startPostgres(folder, { port: server.port })
  await expect
    .poll(async () => {
      await limited.meet()
      const rows = await limited.database.query("SELECT 1 FROM rate_gateways").catch(() => [])
      return rows.length
    })
    .toBe(2)
  await keepsTheLimit(limited, 2_000)
})
