/** Spend by tag is bounded: callers choose the values of tags. */
import { expect, test } from "vitest"
import type { TagSpendQuestion } from "../../store/events/upkeep.ts"
import type { Database } from "../../store/sql.ts"
import { readUsageSpend } from "./usage-spend.ts"

const nowMs = Date.parse("2026-01-31T12:00:00Z")
const rowsMax = 20_000

/** An account that spent nothing by its ledger, and whose tag has so many values. */
async function readWith(values: number) {
  const spendByTag = async ({ limit, endMs }: TagSpendQuestion) =>
    Array.from({ length: Math.min(values, limit) }, (_, at) => ({
      day: Math.floor((endMs - 1) / 86_400_000),
      value: `job-${at}`,
      ticks: "1",
    }))
  const database: Pick<Database, "query"> = { query: async () => [] }
  // Only queries are made.
  const parts = { database: database as Database, spendByTag }
  return await readUsageSpend(
    parts,
    { range: "30d", tag: "job", organizationIds: async () => ["org_1"] },
    { billingAccountId: "ba_1", nowMs },
  )
}

test("a tag has as many values as the limit says, and with one more it is refused", async () => {
  expect((await readWith(rowsMax)).tags).toHaveLength(rowsMax)
  await expect(readWith(rowsMax + 1)).rejects.toMatchObject({ code: "invalid_query" })
})
