import { expect, test } from "vitest"
import type { Region } from "../../base/catalog.ts"
import { type PlanRequest, distanceKm, planRoute } from "./plan.ts"

const at = (id: string, latitude: number, longitude: number): Region => ({
  id,
  country: "XX",
  latitude,
  longitude,
})
const paris = at("paris", 48.8566, 2.3522)
const twinA = at("twin-a", 10, 10)
const twinB = at("twin-b", 10, 10)

const request = (changes: Partial<PlanRequest>): PlanRequest => ({
  policy: { mode: "nearest", fallback: "visible_regions", regions: [] },
  regions: [twinA, twinB],
  visible: null,
  hosts: () => true,
  hint: null,
  from: paris,
  latencyMs: () => Infinity,
  ...changes,
})

test.each([
  ["New York", at("nyc", 40.7128, -74.006), 5837],
  ["the antipodes", at("anti", -48.8566, -177.6478), 20_015],
  ["itself", paris, 0],
])("the distance from Paris to %s is right to half a percent", (_name, place, km) => {
  expect(Math.abs(distanceKm(paris, place) - km)).toBeLessThanOrEqual(Math.max(1, km * 0.005))
})

test("the way across the date line is the short one: a degree at the equator", () => {
  expect(distanceKm(at("east", 0, 179.5), at("west", 0, -179.5))).toBeCloseTo(111.19, 1)
})

test("regions that are equally far are taken by latency", () => {
  expect(planRoute(request({ latencyMs: (id) => (id === "twin-b" ? 5 : 9) })).map(({ id }) => id)).toEqual([
    "twin-b",
    "twin-a",
  ])
})

test("regions that are equally far and unmeasured keep the order of the configuration", () => {
  expect(planRoute(request({})).map(({ id }) => id)).toEqual(["twin-a", "twin-b"])
})

test("a gateway that stands nowhere goes by latency alone", () => {
  const plan = planRoute(
    request({ regions: [paris, twinA], from: null, latencyMs: (id) => (id === "paris" ? 50 : 3) }),
  )
  expect(plan.map(({ id }) => id)).toEqual(["twin-a", "paris"])
})
