import { expect, test } from "vitest"
import { rowErrors } from "./row-errors.ts"

const line = (message: string | null, requestId: string | null = null) => ({
  error: message === null ? null : { code: "code", message, requestId },
})

test("each error is told once with its rows and a request that shows it, the most frequent first", () => {
  const lines = [line("rare", "req_1"), line("often"), line(null), line("often", "req_3")]
  expect(rowErrors(lines)).toEqual([
    { code: "code", message: "often", rows: 2, requestId: "req_3" },
    { code: "code", message: "rare", rows: 1, requestId: "req_1" },
  ])
})

test("where no row failed there is no error", () => {
  expect(rowErrors([line(null), line(null)])).toEqual([])
})
