/** What happens to prepared embeddings that are not paid for. */
import { expect, test } from "vitest"
import type { Catalog } from "../../base/catalog.ts"
import type { Call } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { RequestTrace } from "../telemetry.ts"
import { catalogResolver } from "../organization-access.ts"
import { embeddingHandler } from "./embed.ts"
import type { InferenceParts } from "./inference.ts"

test("embeddings that nobody can pay for are discarded at the engine", async () => {
  let discarded = 0
  const prepared = {
    inputTokens: 1,
    run: async () => [],
    discard: () => void discarded++,
  }
  const parts = {
    models: catalogResolver({
      find: () => ({ sku: "m", kind: "embedding", enabled: true, file: "m.gguf" }),
    } as unknown as Catalog),
    router: { open: async () => ({ embedder: { prepare: async () => prepared }, close: () => undefined }) },
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
    readBody: async () => ({ model: "m", input: "text" }),
  } as unknown as InferenceParts
  const call = {
    body: new Uint8Array(),
    principal: { kind: "key", id: "key_1" },
    standing: { organizationId: "org_1" },
    request: { signal: new AbortController().signal, header: () => null },
    header: () => undefined,
  } as unknown as Call<Record<string, never>, Record<string, never>, Uint8Array>
  await expect(embeddingHandler(parts)(call)).rejects.toMatchObject({ code: "insufficient_credits" })
  expect(discarded).toBe(1)
})
