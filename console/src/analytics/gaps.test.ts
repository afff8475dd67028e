import { expect, test } from "vitest"
import { withGaps } from "./gaps.ts"

const requests = [
  { key: "a", values: [2, 0, 1] },
  { key: "b", values: [0, 0, 4] },
]

test("a latency is a gap where there were no requests, and 0 ms where one was that fast", () => {
  const series = [{ key: "a", values: [12, 0, 0] }]
  expect(withGaps(series, "p50_latency", requests)).toEqual([[12, null, 0]])
})

test("an error rate of 0 is drawn where there were requests", () => {
  expect(withGaps([{ key: "b", values: [0, 0, 0] }], "error_rate", requests)).toEqual([[null, null, 0]])
})

test("a group whose requests are not known has a gap for each latency of 0", () => {
  expect(withGaps([{ key: null, values: [5, 0, 7] }], "p95_latency", requests)).toEqual([[5, null, 7]])
  expect(withGaps([{ key: null, values: [0, 0, 0.5] }], "error_rate", requests)).toEqual([[0, null, 0.5]])
})

test("a count is 0 where there was nothing to count", () => {
  expect(withGaps([{ key: "a", values: [2, 0, 1] }], "requests", [])).toEqual([[2, 0, 1]])
})
