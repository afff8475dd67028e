/** A whole minute at ten times the limit over two gateways. */
import { afterAll, beforeAll, test } from "vitest"
import { freshDatabase } from "./postgres.ts"
import { type LimitedGateways, keepsTheLimit, startLimitedGateways } from "./rate-limits.ts"

let fresh: Awaited<ReturnType<typeof freshDatabase>>
let limited: LimitedGateways

beforeAll(async () => {
  fresh = await freshDatabase()
  limited = await startLimitedGateways(fresh.url)
})

afterAll(async () => {
  await limited.close()
  await fresh.drop()
})

test("in a minute at 6,000 requests over two gateways a key of 600 a minute passes at most 600 and one lease", async () => {
  const { passed, sent, seconds } = await keepsTheLimit(limited, 60_000)
  process.stdout.write(`${passed} of ${sent} passed in ${seconds.toFixed(1)} s\n`)
})
