import { predicate } from "../../engine/branch.ts"
import { expect, test } from "vitest"
import type { PreparedScore } from "../../engine/engine.ts"
import { type NewRoute, routedScorer } from "./router.ts"

const never = new AbortController().signal

/** A worker that knows its count of tokens only with its answer, like one that serves System One itself. */
function lateCounter(): PreparedScore {
  const prepared = {
    inputTokens: 500,
    async run() {
      prepared.inputTokens = 42
      return Float64Array.of(1)
    },
    discard() {},
  }
  return prepared
}

test("tokens that a worker counts only with its answer are what the request is charged", async () => {
  const attempt = {
    measured() {},
    succeeded() {},
    abandon() {},
    step: async <Result>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<Result>) =>
      await run(signal),
  }
  const route = {
    place: async () => ({ prepared: lateCounter(), attempt }),
    failed(_attempt: unknown, error: unknown) {
      throw error
    },
  }
  // Only these parts of a route are used on the way of a request that succeeds.
  const scorer = routedScorer((() => route) as unknown as NewRoute)
  const prepared = await scorer.prepare(
    { organizationId: "a", evidence: "e", branches: [predicate("b")] },
    never,
  )
  expect(prepared.inputTokens).toBe(500)
  await prepared.run(never)
  expect(prepared.inputTokens).toBe(42)
})
