/** The whole table of routing: modes, fallbacks, lists, visibility, hosting, health and hints, against a reference. */
import { admitAny } from "../src/engine/engine.ts"
import { predicate } from "../src/engine/branch.ts"
import { afterAll, describe, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import type { Region } from "../src/base/catalog.ts"
import { Fault } from "../src/contract/errors.ts"
import { createRouter } from "../src/gateway/routing/router.ts"
import type { WorkerSettings } from "../src/gateway/routing/worker.ts"
import { type Expectation, type RoutingCase, countryOf, expectedRouting } from "./routing-reference.ts"
import { RequestTrace } from "../src/gateway/telemetry.ts"

const places: Record<string, { latitude: number; longitude: number }> = {
  oslo: { latitude: 59.91, longitude: 10.75 },
  lyon: { latitude: 45.76, longitude: 4.84 },
  berlin: { latitude: 52.52, longitude: 13.41 },
  paris: { latitude: 48.86, longitude: 2.35 },
}
const regions: readonly Region[] = Object.entries(places).map(([id, at]) => ({
  id,
  country: countryOf[id] ?? "",
  ...at,
}))
const everywhere = Object.keys(places)

const lists = [
  [],
  ["paris"],
  ["lyon"],
  ["berlin", "paris"],
  ["oslo", "lyon", "paris"],
  ["lyon", "berlin", "oslo"],
]
const visibilities = [everywhere, ["lyon", "berlin", "oslo"], ["paris"], []]
const hostings = [everywhere, ["paris", "oslo"], ["lyon", "berlin"]]
const deaths = [[], ["paris"], ["paris", "lyon"], ["berlin", "oslo"], everywhere]
const hints = [null, "lyon", "oslo", "atlantis"]

let compared = 0

afterAll(() => {
  // A table that shrinks by mistake would still pass.
  expect(compared).toBe(3 * 3 * 6 * 4 * 3 * 5 * 4)
})

describe.each(["nearest", "ordered", "required"] as const)("mode %s", (mode) => {
  test.each(["disabled", "same_country", "visible_regions"] as const)(
    "with fallback %s asks the regions that the contract says, in its order",
    async (fallback) => {
      for (const listed of lists)
        for (const visible of visibilities)
          for (const hosting of hostings)
            for (const dead of deaths)
              for (const hint of hints) {
                const given: RoutingCase = { mode, fallback, listed, visible, hosting, dead, hint }
                expect(await routed(given), JSON.stringify(given)).toEqual(expectedRouting(given))
                compared++
              }
    },
  )
})

async function routed(given: RoutingCase): Promise<Expectation> {
  const asked: string[] = []
  const worker = (regionId: string): WorkerSettings => ({
    id: `worker-${regionId}`,
    regionId,
    slotsMax: 1,
    waitingMax: 1,
    attemptTimeoutMs: null,
    engines: {
      scorer: {
        score: async (_, { admit }) => {
          asked.push(regionId)
          if (given.dead.includes(regionId)) throw new Fault("inference_failed", "Cannot: it is dead")
          await admit(1)
          return { margins: new Float64Array([1]), inputTokens: 1 }
        },
      },
    },
  })
  const { mode, fallback, listed, visible } = given
  const router = createRouter({
    regions,
    from: regions.find(({ id }) => id === "paris") ?? null,
    workers: new Map([["m", given.hosting.map(worker)]]),
    policies: { of: async () => ({ policy: { mode, fallback, regions: listed }, visible }) },
    clock: systemClock,
    log: silentLog,
    health: { intervalMs: 1, timeoutMs: 1, failuresMax: 1 },
    queueWaitMs: 1000,
  })
  try {
    let placed = "none"
    const trace = new RequestTrace(systemClock)
    const onPlaced = (region: string): void => void (placed = region)
    const way = await router.open({ model: "m", organizationId: "org_1", hint: given.hint, trace, onPlaced })
    const { signal } = new AbortController()
    const work = { organizationId: "org_1", evidence: "e", branches: [predicate("b")] }
    await way.score(work, { signal, admit: admitAny })
    return { asked, outcome: { region: placed } }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { asked, outcome: { error: error.code } }
  } finally {
    await router.close()
  }
}
