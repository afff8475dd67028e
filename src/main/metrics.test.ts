import { expect, test } from "vitest"
import { Metrics } from "../base/telemetry.ts"
import { metricsReader } from "./metrics.ts"

test("the metrics are written at most once a second, however often they are read", () => {
  let nowMs = 0
  let measured = 0
  const metrics = new Metrics()
  metrics.gauge("umpire_reads", "Times that it was measured.", () => [{ labels: {}, value: ++measured }])
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  const read = metricsReader({ host: "127.0.0.1" }, metrics, clock)
  const first = read(null)
  nowMs = 999
  expect(read(null)).toBe(first)
  nowMs = 1_000
  expect(read(null).toString()).toContain("umpire_reads 2\n")
  expect(measured).toBe(2)
})

test("the text is for the bearer value of the metrics alone, also while it is known", () => {
  const metrics = new Metrics()
  const clock = { nowMs: () => 0, monotonicMs: () => 0 }
  const read = metricsReader({ host: "127.0.0.1", token: "of the metrics" }, metrics, clock)
  expect(read("Bearer of the metrics").toString()).toBe("\n")
  expect(() => read("Bearer another")).toThrow(expect.objectContaining({ code: "invalid_credentials" }))
  expect(() => read(null)).toThrow(expect.objectContaining({ code: "missing_credentials" }))
})
