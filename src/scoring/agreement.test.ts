/** Kappa is 1 for agreement, 0 for chance, and says nothing where there is nothing to say. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { cohensKappa, type LabelPair, stratifiedKappa } from "./evaluation.ts"

const repeat = (pair: LabelPair, times: number): LabelPair[] => Array.from({ length: times }, () => pair)

test("the example of the textbook: 35 of 50 agreed, 0.4", () => {
  const pairs = [
    ...repeat(["yes", "yes"], 20),
    ...repeat(["yes", "no"], 5),
    ...repeat(["no", "yes"], 10),
    ...repeat(["no", "no"], 15),
  ]
  expect(cohensKappa(pairs)).toBeCloseTo(0.4, 12)
})

test("one pair, and labels that are all the same, say nothing", () => {
  expect(cohensKappa([["yes", "no"]])).toBeNull()
  expect(cohensKappa(repeat(["yes", "yes"], 10))).toBeNull()
})

test("it lies between -1 and 1, and does not depend on who is first or on the order", () => {
  const label = fc.constantFrom("a", "b", "c")
  fc.assert(
    fc.property(fc.array(fc.tuple(label, label), { minLength: 2 }), (pairs) => {
      const kappa = cohensKappa(pairs)
      if (kappa === null) return
      expect(kappa).toBeGreaterThanOrEqual(-1)
      expect(kappa).toBeLessThanOrEqual(1)
      expect(cohensKappa(pairs.map(([one, other]) => [other, one]))).toBeCloseTo(kappa, 12)
      expect(cohensKappa(pairs.toReversed())).toBeCloseTo(kappa, 12)
    }),
  )
})

test("over questions it is the mean by pairs; those that say nothing are left out", () => {
  const agreed: LabelPair[] = [["a", "a"], ["b", "b"]] // prettier-ignore
  const opposed: LabelPair[] = [["a", "b"], ["b", "a"]] // prettier-ignore
  expect(stratifiedKappa([agreed, opposed, repeat(["x", "x"], 5)])).toBeCloseTo(0, 12)
  expect(stratifiedKappa([])).toBeNull()
})
