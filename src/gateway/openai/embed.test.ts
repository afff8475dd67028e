/** What happens to embeddings that are not paid for. */
import { inferenceCall, inferenceDeps } from "../../../test/in-memory-gateway.ts"
import { expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import type { Routed } from "../routing/router.ts"
import { embeddingHandler } from "./embed.ts"

test("embeddings that are not paid for are not made", async () => {
  let made = 0
  const embed: Routed["embed"] = async (_, { admit }) => {
    await admit(1)
    made++
    return { vectors: [], inputTokens: 1 }
  }
  const deps = inferenceDeps({
    model: { kind: "embedding" },
    engines: { embed },
    sequence: {
      reserve: async () => {
        throw new Fault("insufficient_credits", "Cannot")
      },
    },
    body: { model: "m", input: "text" },
  })
  await expect(embeddingHandler(deps)(inferenceCall())).rejects.toMatchObject({
    code: "insufficient_credits",
  })
  expect(made).toBe(0)
})
