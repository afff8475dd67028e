import { expect, test } from "vitest"
import {
  type LogView,
  chipsOf,
  emptyView,
  logQuery,
  readLogView,
  tagsOfText,
  writeLogView,
} from "./log-view.ts"

const view: LogView = {
  range: "7d",
  filters: { result: "error", latency_ms_min: "500", api_key_id: "key_1" },
  tags: ["team=ops", "job"],
  more: ["!model:umpire-decide", "stop_reason:"],
}

test("a view comes back from its address, whatever became of its numbers on the way", () => {
  expect(readLogView(writeLogView(view))).toEqual(view)
  expect(readLogView({ ...writeLogView(view), latency_ms_min: 500 })).toEqual(view)
  expect(readLogView({})).toEqual(emptyView)
  expect(writeLogView(emptyView)).toEqual({})
})

test("a range of its own wins over a preset, and an impossible one is left out", () => {
  expect(readLogView({ start: 1, end: 2 }).range).toEqual({ startMs: 1, endMs: 2 })
  expect(readLogView({ start: 2, end: 2, range: "1h" }).range).toBe("1h")
  expect(readLogView({ range: "constructor" }).range).toBe("24h")
})

test("an address with anything else in it is read for what it knows", () => {
  expect(readLogView({ result: { a: 1 }, tag: [1, null, "a"], f: "model:x", other: "y" })).toEqual({
    ...emptyView,
    tags: ["1", "a"],
    more: ["model:x"],
  })
})

test("a preset has no end, so that new requests are in it", () => {
  expect(logQuery({ ...view, range: "1h" }, 3_600_001)).toEqual({
    range_start: "1",
    result: "error",
    latency_ms_min: "500",
    api_key_id: "key_1",
    tag: ["team=ops", "job"],
    f: ["!model:umpire-decide", "stop_reason:"],
  })
  expect(logQuery({ ...emptyView, range: "all" }, 5)).toEqual({ tag: [], f: [] })
})

test("each filter is a chip in words that knows the view without it", () => {
  const chips = chipsOf(view, (_, value) => (value === "key_1" ? "first key" : value))
  expect(chips.map(({ words }) => words)).toEqual([
    "Result is error",
    "API key is first key",
    "Latency at least 500 ms",
    "Tag team=ops",
    "Tag job",
    "Model is not umpire-decide",
    "Stop reason is (none)",
  ])
  const [first] = chips
  expect(first?.without).toEqual({ ...view, filters: { latency_ms_min: "500", api_key_id: "key_1" } })
  const last = chips.at(-1)
  expect(last?.without.more).toEqual(["!model:umpire-decide"])
})

test("tags are typed with commas between them", () => {
  expect(tagsOfText(" team=ops, job ,,job")).toEqual(["team=ops", "job"])
})
