import { expect, test } from "vitest"
import { Metrics } from "./telemetry.ts"

test("counters, gauges and histograms are written as Prometheus reads them", () => {
  const metrics = new Metrics()
  const count = metrics.counter("requests_total", "Requests.")
  const observe = metrics.histograms("duration_seconds", "Durations.", [10, 100])({})
  let level = 1
  metrics.gauge("level", "A level.", () => [{ labels: { place: 'a"b\\c\nd' }, value: level }])
  count({ status: "200" })
  count({ status: "200" }, 2)
  for (const value of [10, 11, 101]) observe(value)
  level = 7
  expect(metrics.text()).toBe(
    [
      "# HELP requests_total Requests.",
      "# TYPE requests_total counter",
      'requests_total{status="200"} 3',
      "# HELP duration_seconds Durations.",
      "# TYPE duration_seconds histogram",
      'duration_seconds_bucket{le="10"} 1',
      'duration_seconds_bucket{le="100"} 2',
      'duration_seconds_bucket{le="+Inf"} 3',
      "duration_seconds_sum 122",
      "duration_seconds_count 3",
      "# HELP level A level.",
      "# TYPE level gauge",
      'level{place="a\\"b\\\\c\\nd"} 7',
      "",
    ].join("\n"),
  )
})

test("a label that takes ever new values stops at a bound", () => {
  const metrics = new Metrics()
  const count = metrics.counter("many_total", "Many.")
  for (let value = 0; value < 10_001; value++) count({ value: String(value) })
  count({ value: "0" })
  const lines = metrics.text().trim().split("\n").slice(2)
  expect(lines).toHaveLength(10_000)
  expect(lines[0]).toBe('many_total{value="0"} 2')
})

test("two metrics of one name are a mistake", () => {
  const metrics = new Metrics()
  metrics.counter("twice_total", "Once.")
  expect(() => metrics.counter("twice_total", "Again.")).toThrow(RangeError)
})

test("a counter that does not end in _total is a mistake, and a level that does", () => {
  const metrics = new Metrics()
  expect(() => metrics.counter("requests", "Requests.")).toThrow(RangeError)
  expect(() => metrics.gauge("level_total", "A level.", () => [])).toThrow(RangeError)
  expect(() => metrics.total("lines_total", "Lines.", () => [])).not.toThrow()
})
