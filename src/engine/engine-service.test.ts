/** What is not admitted ends at the engine, and lets go of what it held. */
import { expect, test } from "vitest"
import { predicate } from "./branch.ts"
import { engineHandlers } from "./engine-service.ts"
import { plainWork } from "../../test/plain-work.ts"

const never = new AbortController().signal

test("work whose stream is left after its size is refused at its engine", async () => {
  const refused: string[] = []
  const asked = async <Admission>(name: string, admission: Promise<Admission>): Promise<Admission> => {
    try {
      return await admission
    } catch (error) {
      refused.push(name)
      throw error
    }
  }
  const handlers = engineHandlers(() => ({
    scorer: {
      score: async (_, { admit }) => {
        await asked("score", admit(1))
        return { margins: Float64Array.of(0), inputTokens: 1 }
      },
    },
    generator: {
      async *generate(_, { admit }) {
        await asked("generate", admit({ inputTokensMost: 1, outputTokensMost: 1 }))
        yield { kind: "end", reason: "stop" } as const
      },
    },
    embedder: {
      embed: async (_, { admit }) => {
        await asked("embed", admit(1))
        return { vectors: [], inputTokens: 1 }
      },
    },
  }))
  const scoreWork = { organizationId: "o", evidence: "e", branches: [predicate("a")] }
  // No engine here looks at it.
  const streams = [
    handlers.score({ model: "", work: scoreWork }, never),
    handlers.generate({ model: "", work: plainWork() }, never),
    handlers.embed({ model: "", work: { inputs: ["a"], dimensions: null } }, never),
  ]
  for (const stream of streams) {
    await stream.next(undefined)
    await stream.return(undefined as never)
  }
  await expect.poll(() => refused).toEqual(["score", "generate", "embed"])
})
