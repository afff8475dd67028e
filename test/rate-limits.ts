/** Two gateways on one PostgreSQL, one key, and far more requests than it may send. */
import { setTimeout as wait } from "node:timers/promises"
import { expect } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { keys } from "../src/store/keys.ts"
import { migrate } from "../src/store/migrate.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { leaseOf, openSharedRateLimiter } from "../src/store/shared-rate-limiter.ts"
import type { Database } from "../src/store/sql.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

export interface LimitedGateways {
  readonly gateways: readonly [Platform, Platform]
  readonly database: Database
  /** Both gateways learn how many there are; they do so every few seconds by themselves. */
  meet(): Promise<void>
  close(): Promise<void>
}

export async function startLimitedGateways(url: string): Promise<LimitedGateways> {
  const open = async (gatewayId: string) => {
    const database = await openPostgres({ url })
    await migrate(database)
    const limiter = await openSharedRateLimiter({
      database,
      gatewayId,
      clock: systemClock,
      log: silentLog,
      // A store that a busy machine keeps waiting is not away: each gateway would then count on its own.
      answerMsMax: 600_000,
    })
    return { database, limiter, platform: await startPlatform(database, { rateLimits: limiter }) }
  }
  const [a, b] = [await open("gw_a"), await open("gw_b")]
  return {
    gateways: [a.platform, b.platform],
    database: a.database,
    meet: async () => {
      for (const { limiter } of [a, b]) await limiter.announce()
    },
    close: async () => {
      for (const { platform, limiter, database } of [a, b]) {
        await platform.close()
        await limiter.close()
        await database.close()
      }
    },
  }
}

export const requestsPerMinute = 600
export const burst = 60
export const lease = leaseOf({ burst, intervalMs: 60_000 / requestsPerMinute })
/** Ten times what the key may send. */
const sentPerSecond = (10 * requestsPerMinute) / 60
const sendEveryMs = 50
/** A busy machine falls behind instead of opening ever more connections. */
const openMax = 100

export async function limitedKey({ gateways, database }: LimitedGateways): Promise<string> {
  const seed = seeder(gateways[0])
  const organizationId = await seed.organization("Limited", await seed.billingAccount())
  const key = await seed.key(organizationId, ["api-read"])
  await keys.update(database, key.id, {
    rateLimitPerMinute: requestsPerMinute,
    rateLimitBurst: burst,
    updatedAt: new Date(),
  })
  return key.value
}

export interface Passed {
  readonly passed: number
  readonly sent: number
  readonly seconds: number
}

/** Sends at ten times the limit, to both gateways in turn. */
export async function overload(
  gateways: readonly Platform[],
  bearer: string,
  forMs: number,
): Promise<Passed> {
  const startedMs = performance.now()
  const answers: Promise<number>[] = []
  const open = new Set<object>()
  const ask = async (gateway: Platform): Promise<number> => {
    const request = {}
    open.add(request)
    const { status } = await gateway.send("GET", "/v1/organizations", { bearer })
    open.delete(request)
    return status
  }
  const sentMin = (forMs / 1000) * sentPerSecond
  // Also on a machine that pauses as many are sent as in the given time.
  while (performance.now() - startedMs < forMs || answers.length < sentMin) {
    const due = Math.ceil(((performance.now() - startedMs) / 1000) * sentPerSecond)
    while (answers.length < due && open.size < openMax) {
      const gateway = gateways[answers.length % gateways.length]
      if (gateway) answers.push(ask(gateway))
    }
    await wait(sendEveryMs)
  }
  const statuses = await Promise.all(answers)
  // What passed the limit may still need the database.
  const passed = statuses.filter((status) => status !== 429).length
  return { passed, sent: statuses.length, seconds: (performance.now() - startedMs) / 1000 }
}

/** What may pass in that time once the burst is used: one more is a part of a request at either end. */
export const most = (seconds: number): number => (requestsPerMinute / 60) * seconds + lease + 1

/** Uses up the burst, and then counts for so long. */
export async function keepsTheLimit(limited: LimitedGateways, forMs: number): Promise<Passed> {
  await limited.meet()
  const bearer = await limitedKey(limited)
  const startedMs = performance.now()
  const first = await overload(limited.gateways, bearer, 1_500)
  expect(first.passed).toBeLessThanOrEqual(most(first.seconds) + burst)
  const then = await overload(limited.gateways, bearer, forMs)
  // Of both together: what a slow machine did not send of the burst in the first passes in the second.
  const seconds = (performance.now() - startedMs) / 1000
  expect(first.passed + then.passed).toBeLessThanOrEqual(most(seconds) + burst)
  // It lets through what it should, less what is counted twice at most.
  expect(then.passed).toBeGreaterThanOrEqual((requestsPerMinute / 60) * (forMs / 1000) * 0.8 - lease)
  return then
}
