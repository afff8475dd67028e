import { expect, test } from "vitest"
import { keyTable } from "../../../src/contract/platform/keys.ts"
import { problemWords, problemsOf } from "./refusal-words.ts"

const refused = (body: object): string[] => {
  const found = keyTable.createApiKey.body.safeParse({ name: "a", permissions: ["inference"], ...body })
  return (found.error?.issues ?? []).map(({ path, message }) =>
    problemWords({ path: path.join("."), message }),
  )
}

test.each([
  [{ rate_limit: { requests_per_minute: 5, burst: 0 } }, "Burst: at least 1 is needed"],
  [{ tokens_per_minute: 1e10 }, "Tokens per minute: at most 1,000,000,000 are needed"],
  [{ name: "" }, "Name: cannot be empty"],
  [{ name: "x".repeat(201) }, "Name: at most 200 characters are needed"],
  [{ allowed_models: [] }, "Allowed models: cannot be empty"],
  [{ tokens_per_minute: "many" }, "Tokens per minute: is not valid"],
  [{ budgets: [{ period: "day" }] }, "Budgets: a cutoff or a warning is needed"],
])("what a schema says of %j is said in words", (body, words) => {
  expect(refused(body)).toEqual([words])
})

test("an error without fields has none", () => {
  expect(problemsOf({ error: { code: "conflict" } })).toEqual([])
  expect(problemsOf(null)).toEqual([])
})
