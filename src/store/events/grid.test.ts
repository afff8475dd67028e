import { expect, test } from "vitest"
import { bucketsOf, gridOf } from "./grid.ts"

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
