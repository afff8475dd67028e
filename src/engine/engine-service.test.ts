/** What was prepared and is not run is given back, whoever prepared it. */
import { expect, test } from "vitest"
import { predicate } from "./branch.ts"
import { engineHandlers } from "./engine-service.ts"
import type { GenerateWork } from "./engine.ts"

const never = new AbortController().signal

test("a stream that is left after its first item discards its prepared work", async () => {
  const discarded: string[] = []
  const handlers = engineHandlers(() => ({
    scorer: {
      prepare: async () => ({
        inputTokens: 1,
        run: async () => Float64Array.of(0),
        discard: () => void discarded.push("score"),
      }),
    },
    generator: {
      prepare: async () => ({
        inputTokensMost: 1,
        outputTokensMost: 1,
        usage: () => ({
          inputTokens: 0,
          cachedInputTokens: 0,
          outputTokens: 0,
          reasoningTokens: 0,
          executionMs: 0,
        }),
        async *run() {
          yield { kind: "end", reason: "stop" } as const
        },
        discard: () => void discarded.push("generate"),
      }),
    },
    embedder: {
      prepare: async () => ({
        inputTokens: 1,
        run: async () => [],
        discard: () => void discarded.push("embed"),
      }),
    },
  }))
  const scoreWork = { organizationId: "o", evidence: "e", branches: [predicate("a")] }
  const generateWork = { organizationId: "o", messages: [] } as unknown as GenerateWork
  const streams = [
    handlers.score({ model: "", work: scoreWork }, never),
    handlers.generate({ model: "", work: generateWork }, never),
    handlers.embed({ model: "", work: { inputs: ["a"], dimensions: null } }, never),
  ]
  for (const stream of streams) {
    await stream.next(undefined)
    await stream.return(undefined as never)
  }
  expect(discarded).toEqual(["score", "generate", "embed"])
})
