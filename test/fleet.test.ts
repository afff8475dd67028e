/** Several gateways of one installation see each other, and drain workers together. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import type { GatewayState } from "../src/contract/fleet-report.ts"
import { createRouter } from "../src/gateway/routing/router.ts"
import { openFleet } from "../src/main/fleet.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { operatorOn } from "./operator.ts"

const worker = "local/10.0.1.5:8485#0"
const clock = new ManualClock(1_800_000_000_000)
let database: Database
const closers: (() => Promise<void>)[] = []

beforeAll(async () => {
  database = await openTestDatabase()
})

afterAll(async () => {
  for (const close of closers.toReversed()) await close()
  await database.close()
})

async function gateway(id: string) {
  const settings = { id: worker, regionId: "local", slotsMax: 1, waitingMax: 1, attemptTimeoutMs: null }
  const router = createRouter({
    regions: [],
    from: null,
    workers: new Map([["m", [{ ...settings, engines: {} }]]]),
    policies: { of: () => Promise.reject(new Error("nothing is routed")) },
    clock,
    log: silentLog,
    health: { intervalMs: 1000, timeoutMs: 1000, failuresMax: 2 },
    queueWaitMs: 1000,
  })
  const report = () =>
    ({ gateway_id: id, version: "1.0.0", models: router.report() }) as unknown as GatewayState
  const fleet = await openFleet({ database, router, report, clock, log: silentLog })
  closers.push(
    () => router.close(),
    () => fleet.close(),
  )
  return {
    operator: operatorOn(database, fleet.handlers),
    fleet,
    isDrained: () => router.report()[0]?.workers[0]?.drained,
  }
}

test("gateways see each other, how long ago each was seen, and what is drained at one is drained at all", async () => {
  const paris = await gateway("gw_paris")
  const oslo = await gateway("gw_oslo")
  await oslo.operator.getFleet()
  await paris.operator.drainWorker({ body: { worker } })
  expect(paris.isDrained()).toBe(true)
  expect(await oslo.operator.getFleet()).toMatchObject({
    drained_workers: [worker],
    gateways: [{ gateway_id: "gw_oslo", seen_s_ago: 0 }, { gateway_id: "gw_paris" }],
  })
  expect(oslo.isDrained()).toBe(true)
  const late = await gateway("gw_rome")
  expect(late.isDrained()).toBe(true)
  await oslo.operator.undrainWorker({ body: { worker } })
  await paris.operator.getFleet()
  expect(paris.isDrained()).toBe(false)

  for (const [named, sentence] of [
    ["nowhere", /no gateway has/],
    ["x".repeat(257), /worker: /],
    ["local/local#0", /stop the gateway/],
  ] as const)
    await expect(paris.operator.drainWorker({ body: { worker: named } })).rejects.toThrow(sentence)

  await late.fleet.close()
  const { gateways } = await paris.operator.getFleet()
  expect(gateways.map(({ gateway_id }) => gateway_id)).toEqual(["gw_oslo", "gw_paris"])
})

test("a gateway that is silent for a day is forgotten", async () => {
  const alone = await gateway("gw_alone")
  clock.advance(86_400_001)
  expect(await alone.operator.getFleet()).toMatchObject({ gateways: [{ gateway_id: "gw_alone" }] })
})
