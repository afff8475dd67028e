/** Several gateways of one installation see each other, and drain workers together. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { ManualClock } from "./manual-clock.ts"
import { silentLog } from "../src/base/log.ts"
import { ticksPerCent } from "../src/base/money.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { run } from "../src/store/rows.ts"
import { givenOrganization } from "./store/conformance-fixtures.ts"
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

test("how long ago a gateway was seen is by the clock of the database, whatever a gateway's own says", async () => {
  const here = await gateway("gw_here")
  await here.operator.getFleet()
  const quiet = JSON.stringify({ gateway_id: "gw_quiet" })
  await run(
    database,
  )`INSERT INTO gateways (id, report, seen_at) VALUES ('gw_quiet', ${quiet}, now() - interval '40 seconds')`
  const { gateways } = await here.operator.getFleet()
  const seenSAgo = Object.fromEntries(gateways.map((one) => [one.gateway_id, one.seen_s_ago]))
  expect(seenSAgo["gw_here"]).toBeLessThan(40)
  expect(seenSAgo["gw_quiet"]).toBeGreaterThanOrEqual(40)
  expect(seenSAgo["gw_quiet"]).toBeLessThan(3_600)
})

test("a gateway that is silent for a day is forgotten", async () => {
  const alone = await gateway("gw_alone")
  await alone.operator.getFleet()
  await run(database)`UPDATE gateways SET seen_at = now() - interval '86401 seconds' WHERE id <> 'gw_alone'`
  const { gateways } = await alone.operator.getFleet()
  expect(gateways.map(({ gateway_id }) => gateway_id)).toEqual(["gw_alone"])
})

test("credit of a gateway that has been silent for a minute is in the metrics, and of one that speaks is not", async () => {
  const speaking = await gateway("gw_speaking")
  const { billingAccountId } = await givenOrganization(database)
  const metrics = new Metrics()
  speaking.fleet.addMetrics(metrics)
  const held = async (): Promise<string | undefined> => {
    await speaking.operator.getFleet()
    return /^umpire_silent_gateways_held_dollars (\S+)$/m.exec(metrics.text())?.[1]
  }
  await speaking.operator.getFleet()
  for (const id of ["gw_speaking", "gw_silent"])
    await run(database)`INSERT INTO leases (gateway_id, billing_account_id, month, held_ticks, expires_at)
      VALUES (${id}, ${billingAccountId}, '2026-01-01', ${ticksPerCent * 150n}, now())`
  await run(
    database,
  )`INSERT INTO gateways (id, report, seen_at) VALUES ('gw_silent', '{}', now() - interval '59 seconds')`
  expect(await held()).toBe("0")
  await run(database)`UPDATE gateways SET seen_at = now() - interval '61 seconds' WHERE id = 'gw_silent'`
  expect(await held()).toBe("1.5")
})
