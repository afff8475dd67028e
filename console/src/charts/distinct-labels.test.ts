import { expect, test } from "vitest"
import { distinctLabels } from "./distinct-labels.ts"

const rounded = (tick: number): string => String(Math.round(tick))

test("no label of an axis stands twice in a row", () => {
  expect(distinctLabels([0, 0.25, 0.5, 0.75, 1], rounded)).toEqual(["0", "", "1", "", ""])
})
