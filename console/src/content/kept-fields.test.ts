import { expect, test } from "vitest"
import { keptDraft, keptOf } from "./kept-fields.tsx"

test("what is kept goes through its fields unchanged", () => {
  const kept = { keep: "answers", sample_rate: 0.07, retention_days: 365 } as const
  expect(keptOf(keptDraft(kept))).toEqual(kept)
})

test.each([
  [{ sample: "100", days: "30" }, true],
  [{ sample: "100.1", days: "30" }, false],
  [{ sample: "0", days: "1" }, true],
  [{ sample: "", days: "1" }, false],
  [{ sample: "5", days: "0" }, false],
  [{ sample: "5", days: "31" }, false],
  [{ sample: "5", days: "1.5" }, false],
])("%j within at most 30 days is taken: %j", (fields, isTaken) => {
  expect(keptOf({ keep: "answers", ...fields }, 30) !== null).toBe(isTaken)
})
