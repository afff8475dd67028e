import { expect, test } from "vitest"
import {
  filterFor,
  formatMetric,
  isAboutErrors,
  keyName,
  rangeOf,
  readChip,
  readView,
  writeView,
} from "./view.ts"

test("a view comes back from its address as it was", () => {
  const view = {
    range: { startMs: 1_000, endMs: 2_000 },
    metric: "p95_latency",
    by: "result",
    filters: ["model:a:b", "!result:error"],
  } as const
  expect(readView(writeView(view))).toEqual(view)
  expect(readView(writeView({ ...view, range: "7d" })).range).toBe("7d")
})

test.each([{}, { range: "1y", metric: "love", by: 7, f: "x", start: "9", end: "3" }])(
  "an address that makes no sense shows the last day by model: %#",
  (search) => {
    expect(readView(search)).toEqual({ range: "24h", metric: "requests", by: "model", filters: [] })
  },
)

test("a preset ends now, a zoomed range stays where it is", () => {
  expect(rangeOf(readView({ range: "1h" }), 10_000_000)).toEqual({ startMs: 6_400_000, endMs: 10_000_000 })
  expect(rangeOf(readView({ start: 5, end: 9 }), 10_000_000)).toEqual({ startMs: 5, endMs: 9 })
})

test("a filter is split at its first colon", () => {
  expect(readChip("!client_ip:::1")).toEqual({ excluded: true, dimension: "client_ip", value: "::1" })
  expect(keyName("")).toBe("(none)")
  expect(keyName(null)).toBe("the rest")
})

test.each([
  [{ metric: "errors" }, true],
  [{ metric: "error_rate" }, true],
  [{ f: ["result:error"] }, true],
  [{ f: ["error_code:overloaded"] }, true],
  [{ f: ["error_code:"] }, false],
  [{ f: ["!result:error", "!error_code:overloaded"] }, false],
])("a view of %j is about errors: %s", (search, expected) => {
  expect(isAboutErrors(readView(search))).toBe(expected)
})

test("figures read as what they are", () => {
  expect(formatMetric("error_rate")(0.0123)).toBe("1.2%")
  expect(formatMetric("p50_latency")(1500)).toBe("1.5 s")
  expect(formatMetric("requests")(9999)).toBe("9,999")
})

test("a view is split by a tag, and one of its groups is a filter as the API writes it", () => {
  expect(readView({ by: "tag:team" }).by).toBe("tag:team")
  expect(readView({ by: "tag:no such" }).by).toBe("model")
  expect(filterFor("tag:team", "ops")).toBe("tag:team=ops")
  expect(filterFor("model", "a:b")).toBe("model:a:b")
})
