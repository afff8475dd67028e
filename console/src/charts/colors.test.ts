import { expect, test } from "vitest"
import { colorsOf, restColor } from "./colors.ts"

const catalog = ["umpire-nano", "umpire-decide", "umpire-reserved"]

test("a model has one color, whichever others are shown and in whatever order", () => {
  const [first, second] = [
    colorsOf(["umpire-nano"], catalog),
    colorsOf(["x", "umpire-nano"], catalog.toReversed()),
  ]
  expect(first("umpire-nano")).toBe(second("umpire-nano"))
})

test("series of one chart have different colors as long as there are any", () => {
  const keys = [...catalog, ...Array.from({ length: 9 }, (_, index) => `key ${index}`)]
  const colors = colorsOf(keys, catalog)
  expect(new Set(keys.map(colors)).size).toBe(12)
})

test("a result has the color of what it means, and the rest none of its own", () => {
  const colors = colorsOf(["error", "success", null])
  expect(colors("error")).not.toBe(colors("success"))
  expect(colors("error")).toBe(colorsOf(["cancelled", "error"])("error"))
  expect(colors(null)).toBe(restColor)
})
