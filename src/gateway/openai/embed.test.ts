/** What happens to embeddings that are not paid for. */
import { inferenceCall } from "../../../test/inference-call.ts"
import { expect, test } from "vitest"
import type { Catalog } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import type { Routed } from "../routing/router.ts"
import { RequestTrace } from "../telemetry.ts"
import { catalogResolver } from "../organization-access.ts"
import { embeddingHandler } from "./embed.ts"
import type { InferenceDeps } from "./inference.ts"

test("embeddings that are not paid for are not made", async () => {
  let made = 0
  const embed: Routed["embed"] = async (_, { admit }) => {
    await admit(1)
    made++
    return { vectors: [], inputTokens: 1 }
  }
  const deps = {
    models: catalogResolver({
      find: () => ({ sku: "m", kind: "embedding", enabled: true, file: "m.gguf" }),
    } as unknown as Catalog),
    router: { open: async () => ({ embed, close: () => undefined }) },
    meter: {
      begin: () => ({
        id: "seq_1",
        tag: () => undefined,
        trace: new RequestTrace({ nowMs: () => 0, monotonicMs: () => 0 }),
        reserve: async () => {
          throw new Fault("insufficient_credits", "Cannot")
        },
        finish: async () => undefined,
      }),
    },
    content: { begin: () => null },
    readBody: async () => ({ model: "m", input: "text" }),
  } as unknown as InferenceDeps
  await expect(embeddingHandler(deps)(inferenceCall)).rejects.toMatchObject({ code: "insufficient_credits" })
  expect(made).toBe(0)
})
