import { expect, test } from "vitest"
import { bucketsOf, gridOf } from "./reports.ts"

const hourMs = 3_600_000

test.each([
  [1, 1],
  [hourMs, 60],
  [hourMs + 1, 72],
  [72 * hourMs, 72],
  [72 * hourMs + 1, 96],
  [90 * 24 * hourMs, 96],
])("a range of %d ms has %d buckets unless told otherwise", (rangeMs, count) => {
  expect(gridOf(1000, 1000 + rangeMs, undefined).count).toBe(count)
})

test.each([
  [0, 1],
  [1, 1],
  [1000, 1000],
  [1001, 1000],
])("%d buckets are clamped to %d", (wanted, count) => {
  expect(gridOf(1, 1 + 1000 * 60, wanted).count).toBe(count)
})

test("buckets follow each other without gaps and the last one ends with the range", () => {
  const grid = gridOf(10, 110, 3)
  expect(grid.bucketMs).toBe(34)
  expect(bucketsOf(grid)).toEqual([
    { t0: 10, t1: 44 },
    { t0: 44, t1: 78 },
    { t0: 78, t1: 110 },
  ])
})

test("buckets are whole milliseconds, so a short range has fewer than asked for", () => {
  expect(bucketsOf(gridOf(5, 8, 1000))).toEqual([
    { t0: 5, t1: 6 },
    { t0: 6, t1: 7 },
    { t0: 7, t1: 8 },
  ])
})

test.each([
  [1000, 999],
  [1999, 1000],
  [61, 60],
  [100, 60],
  [86_400_000, 7],
  [86_400_001, 1000],
])("a range of %d ms has the %d buckets that are asked for, which cover it", (rangeMs, wanted) => {
  const buckets = bucketsOf(gridOf(5, 5 + rangeMs, wanted))
  expect(buckets).toHaveLength(wanted)
  expect([buckets[0]?.t0, buckets.at(-1)?.t1]).toEqual([5, 5 + rangeMs])
  expect(
    buckets.every(({ t0, t1 }, index) => t1 > t0 && (index === 0 || buckets[index - 1]?.t1 === t0)),
  ).toBe(true)
})
