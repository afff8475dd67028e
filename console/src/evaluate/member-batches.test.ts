import { expect, test } from "vitest"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { memberBatches } from "./member-batches.ts"

const batch = (id: string, model: string, status: BatchObject["status"], compared_with = "cascade") => ({
  id,
  status,
  metadata: { model, compared_with },
})
const idsOf = (batches: readonly ReturnType<typeof batch>[]): string[] =>
  memberBatches(batches, "cascade", ["small", "large"]).map(({ id }) => id)

test("the newest batch of each member stands for it", () => {
  const batches = [
    batch("4", "large", "in_progress"),
    batch("3", "small", "completed", "another"),
    batch("2", "small", "completed"),
    batch("1", "small", "completed"),
  ]
  expect(idsOf(batches)).toEqual(["2", "4"])
})

test.each(["failed", "expired", "cancelled"] as const)(
  "a batch that is %s stands for no member",
  (status) => {
    expect(idsOf([batch("1", "small", status)])).toEqual([])
    expect(idsOf([batch("2", "small", status), batch("1", "small", "completed")])).toEqual(["1"])
  },
)
