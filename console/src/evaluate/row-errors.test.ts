import { expect, test } from "vitest"
import { rowErrors } from "./row-errors.ts"

const line = (message: string | null, sequenceId: string | null = null) => ({
  error: message === null ? null : { code: "code", message },
  sequenceId,
})

test("each error is told once with its rows and a request that shows it, the most frequent first", () => {
  const lines = [line("rare", "seq_1"), line("often"), line(null, "seq_2"), line("often", "seq_3")]
  expect(rowErrors(lines)).toEqual([
    { code: "code", message: "often", rows: 2, sequenceId: "seq_3" },
    { code: "code", message: "rare", rows: 1, sequenceId: "seq_1" },
  ])
})

test("where no row failed there is no error", () => {
  expect(rowErrors([line(null), line(null)])).toEqual([])
})
