/** How a streamed chat completion ends when its reader leaves. */
import { expect, test } from "vitest"
import type { Call, EventStream } from "../../contract/endpoint.ts"
import { type PreparedGeneration, noGenerationUsage } from "../../engine/generate/generate.ts"
import { chatHandler } from "./chat.ts"
import type { InferenceParts } from "./inference.ts"

const model = { sku: "m", kind: "generation", enabled: true, file: "m.gguf" }
const body = { model: "m", stream: true, messages: [{ role: "user", content: "hello" }] }

/** As much of a gateway as a handler needs, which notes what happens. */
function partsOf(prepared: PreparedGeneration, happened: string[]): InferenceParts {
  const sequence = {
    id: "seq_1",
    reserve: async () => undefined,
    firstByte: () => undefined,
    finish: async (usage: { outputTokens: number }) =>
      void happened.push(`recorded ${usage.outputTokens} tokens`),
  }
  return {
    catalog: { find: () => model },
    router: { open: async () => ({ generator: { prepare: async () => prepared }, close: () => undefined }) },
    meter: { begin: () => sequence },
    clock: { nowMs: () => 0 },
    ids: { next: (kind: string) => `${kind}_1` },
    timeoutMs: 1000,
    readBody: async () => body,
  } as unknown as InferenceParts
}

test("a reader that leaves between two events stops the model, and then its usage is recorded", async () => {
  const happened: string[] = []
  let outputTokens = 0
  const prepared: PreparedGeneration = {
    inputTokensMost: 1,
    outputTokensMost: 10,
    usage: () => ({ ...noGenerationUsage, outputTokens }),
    discard: () => undefined,
    async *run() {
      try {
        for (;;) yield { kind: "text", text: "x", logprobs: null }
      } finally {
        outputTokens = 7
        happened.push("stopped")
      }
    },
  }
  const call = {
    body: new Uint8Array(),
    principal: { kind: "key", id: "key_1" },
    standing: { organizationId: "org_1" },
    request: { signal: new AbortController().signal, header: () => null },
    header: () => undefined,
  } as unknown as Call<Record<string, never>, Record<string, never>, Uint8Array>
  const answer = await chatHandler(partsOf(prepared, happened))(call)
  const events = (answer as EventStream).events[Symbol.asyncIterator]()
  await events.next()
  await events.next()
  await events.return?.()
  expect(happened).toEqual(["stopped", "recorded 7 tokens"])
})
