import { expect, test } from "vitest"
import { lonePoints } from "./lone-points.ts"

test("a value between two gaps, or between a gap and an end, stands alone", () => {
  expect(lonePoints([3, null, 4, 5, null, 6, null])).toEqual([0, 5])
  expect(lonePoints([null, 0, null])).toEqual([1])
  expect(lonePoints([1, 2])).toEqual([])
})
