import { expect, test } from "vitest"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { memberBatches } from "./member-batches.ts"

const batch = (
  id: string,
  model: string,
  status: BatchObject["status"],
  { compared_with = "cascade", completed = 1 } = {},
) => ({
  id,
  status,
  request_counts: { total: 2, completed, failed: 2 - completed },
  metadata: { model, compared_with },
})

/** Of each member: the batch that stands for it, and the one that came to nothing. */
const idsOf = (batches: readonly ReturnType<typeof batch>[]) =>
  memberBatches(batches, "cascade", ["small", "large"]).map((one) => [
    one.model,
    one.batch?.id ?? null,
    one.failed?.id ?? null,
  ])

test("the newest batch of each member stands for it", () => {
  const batches = [
    batch("4", "large", "in_progress", { completed: 0 }),
    batch("3", "small", "completed", { compared_with: "another" }),
    batch("2", "small", "completed"),
    batch("1", "small", "completed"),
  ]
  expect(idsOf(batches)).toEqual([
    ["small", "2", null],
    ["large", "4", null],
  ])
})

test.each([
  ["failed", 1],
  ["expired", 1],
  ["cancelled", 1],
  ["completed", 0],
] as const)(
  "a batch that is %s with %i rows answered stands for no member, and is named where no other does",
  (status, completed) => {
    const nothing = batch("2", "small", status, { completed })
    expect(idsOf([nothing])).toEqual([
      ["small", null, "2"],
      ["large", null, null],
    ])
    expect(idsOf([nothing, batch("1", "small", "completed")])[0]).toEqual(["small", "1", null])
  },
)
