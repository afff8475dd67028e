import { expect, test } from "vitest"
import { labelHeights } from "./label-heights.ts"

test.each([
  ["names that are far apart stay at their points", [10, 90], [10, 90]],
  ["names at one height stand below each other, the first on top", [20, 20, 20], [20, 34, 48]],
  ["names pushed past the bottom push the others up", [95, 99, 97], [72, 100, 86]],
])("%s", (_, points, expected) => {
  expect(labelHeights(points, { apart: 14, lowest: 100 })).toEqual(expected)
})
