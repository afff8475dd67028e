/** What cascades may cost in a day, and what is counted of them: at one gateway, at several of one database, and over midnight. */
import { afterEach, beforeEach, expect, test } from "vitest"
import { silentLog } from "../src/base/log.ts"
import { createIds } from "../src/base/ids.ts"
import { type CascadeDays, startCascadeDays } from "../src/gateway/cascade-days.ts"
import { listCascadeDays, purgeCascadeDays } from "../src/store/cascade-days.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { ManualClock } from "./manual-clock.ts"
import { seeder } from "./platform.ts"

let database: Database
let named: { organizationId: string; cascade: string }
const gateways: CascadeDays[] = []

beforeEach(async () => {
  database = await openTestDatabase()
  const seed = seeder({ database, ids: createIds() })
  named = {
    organizationId: await seed.organization("One", await seed.billingAccount()),
    cascade: "careful",
  }
})
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
  await database.close()
})

const gatewayAt = (clock: ManualClock): CascadeDays => {
  const days = startCascadeDays({ database, clock, log: silentLog })
  gateways.push(days)
  return days
}
/** One request that is sent on, and costs less than it could. */
async function sendOn(days: CascadeDays, most: bigint, cost: bigint, max: bigint): Promise<boolean> {
  const settle = await days.hold(named, most, max)
  if (settle === null) return false
  settle(cost)
  days.count({ ...named, stage: 1, questions: 1, costTicks: cost, isHeld: true })
  return true
}

test("a stage is asked up to the budget of the day and not one tick beyond, held before it is spent", async () => {
  const days = gatewayAt(new ManualClock(Date.parse("2026-05-04T10:00:00Z")))
  expect(await days.hold(named, 101n, 100n)).toBeNull()
  const first = await days.hold(named, 60n, 100n)
  expect(await days.hold(named, 41n, 100n)).toBeNull()
  const second = await days.hold(named, 40n, 100n)
  expect(second).not.toBeNull()
  first?.(10n)
  first?.(60n)
  second?.(0n)
  expect(await sendOn(days, 90n, 90n, 100n)).toBe(true)
  expect(await days.hold(named, 1n, 100n)).toBeNull()
})

test("what was written down is not counted twice, and another gateway holds to it", async () => {
  const clock = new ManualClock(Date.parse("2026-05-04T10:00:00Z"))
  const [one, other] = [gatewayAt(clock), gatewayAt(clock)]
  expect(await sendOn(other, 10n, 10n, 100n)).toBe(true)
  expect(await sendOn(one, 50n, 50n, 100n)).toBe(true)
  await other.flush()
  await one.flush()
  await other.flush()
  expect(await other.hold(named, 41n, 100n)).toBeNull()
  expect(await one.hold(named, 41n, 100n)).toBeNull()
  expect(await sendOn(one, 40n, 40n, 100n)).toBe(true)
})

test("the next day begins with nothing spent, and days are kept apart", async () => {
  const clock = new ManualClock(Date.parse("2026-05-04T10:00:00Z"))
  const days = gatewayAt(clock)
  expect(await sendOn(days, 100n, 100n, 100n)).toBe(true)
  expect(await sendOn(days, 1n, 1n, 100n)).toBe(false)
  clock.advance(24 * 3_600_000)
  expect(await sendOn(days, 100n, 70n, 100n)).toBe(true)
  days.count({ ...named, stage: 0, questions: 4, costTicks: 3n })
  days.count({ ...named, stage: 1, questions: 0, unanswered: 2, costTicks: 0n })
  days.count({ ...named, stage: 1, questions: 3, changed: 2, costTicks: 0n })
  await days.flush()
  const rows = await listCascadeDays(database, named, 10)
  expect(
    rows.map(({ stage, requests, questions, changed, unanswered, costTicks }) => [
      stage,
      requests,
      questions,
      changed,
      unanswered,
      costTicks,
    ]),
  ).toEqual([
    [0, 1, 4, 0, 0, 3n],
    [1, 3, 4, 2, 2, 70n],
    [1, 1, 1, 0, 0, 100n],
  ])
  expect(await purgeCascadeDays(database, new Date(clock.nowMs()), 10)).toBe(1)
  expect(await listCascadeDays(database, named, 10)).toHaveLength(2)
})

test("counts that cannot be written are kept", async () => {
  const away = new Proxy(database, {
    get: (target, name) => {
      if (name === "query" && isAway) return async () => await Promise.reject(new Error("away"))
      const value: unknown = Reflect.get(target, name)
      return typeof value === "function" ? value.bind(target) : value
    },
  })
  let isAway = true
  const days = startCascadeDays({
    database: away,
    clock: new ManualClock(Date.parse("2026-05-04T10:00:00Z")),
    log: silentLog,
  })
  gateways.push(days)
  days.count({ ...named, stage: 0, questions: 1, costTicks: 1n })
  await days.flush()
  days.count({ ...named, stage: 0, questions: 2, costTicks: 1n })
  isAway = false
  await days.flush()
  const [row] = await listCascadeDays(database, named, 10)
  expect(row).toMatchObject({ requests: 2, questions: 3, costTicks: 2n })
})
