/** How a streamed chat completion is paid for, and how it ends when its reader leaves. */
import { expect, test } from "vitest"
import type { Catalog } from "../../base/catalog.ts"
import type { Call, EventStream } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type PreparedGeneration, noGenerationUsage } from "../../engine/engine.ts"
import { noGuardrails } from "../guardrails/guardrails.ts"
import { chatHandler } from "./chat.ts"
import type { Usage } from "../sequence-record.ts"
import { RequestTrace } from "../telemetry.ts"
import { catalogResolver } from "../organization-access.ts"
import type { InferenceParts } from "./inference.ts"

const model = { sku: "m", kind: "generation", enabled: true, file: "m.gguf" }
const body = { model: "m", stream: true, messages: [{ role: "user", content: "hello" }] }

/** As much of a gateway as a handler needs, which notes what happens. */
function partsOf(
  prepared: PreparedGeneration,
  happened: string[],
  reserve: (model: unknown, most: Usage) => Promise<void> = async () => undefined,
): InferenceParts {
  const sequence = {
    id: "seq_1",
    tag: () => undefined,
    trace: new RequestTrace({ nowMs: () => 0, monotonicMs: () => 0 }),
    reserve,
    firstByte: () => undefined,
    finish: async (usage: { outputTokens: number }) =>
      void happened.push(`recorded ${usage.outputTokens} tokens`),
  }
  return {
    models: catalogResolver({ find: () => model } as unknown as Catalog),
    router: { open: async () => ({ generator: { prepare: async () => prepared }, close: () => undefined }) },
    meter: { begin: () => sequence },
    clock: { nowMs: () => 0 },
    ids: { next: (kind: string) => `${kind}_1` },
    timeoutMs: 1000,
    readBody: async () => body,
    guardrails: noGuardrails,
    content: { begin: () => null },
  } as unknown as InferenceParts
}

const call = {
  body: new Uint8Array(),
  principal: { kind: "key", id: "key_1" },
  standing: { organizationId: "org_1" },
  request: { signal: new AbortController().signal, header: () => null },
  header: () => undefined,
} as unknown as Call<Record<string, never>, Record<string, never>, Uint8Array>

test.each([
  "insufficient_credits",
  "spend_limit_exceeded",
  "key_budget_exceeded",
  "tag_budget_exceeded",
] as const)("an answer without a limit is as long as can be paid for: %s", async (code) => {
  const ran: number[] = []
  const prepared: PreparedGeneration = {
    inputTokensMost: 1,
    outputTokensMost: 100,
    usage: () => noGenerationUsage,
    discard: () => undefined,
    async *run(outputTokensMax) {
      ran.push(outputTokensMax)
      yield { kind: "end", reason: "length" }
    },
  }
  const reserve = async (_: unknown, { outputTokens }: Usage): Promise<void> => {
    if (outputTokens > 25) throw new Fault(code, "Cannot run the request")
  }
  const answer = await chatHandler(partsOf(prepared, [], reserve))(call)
  for await (const _ of (answer as EventStream).events);
  expect(ran).toEqual([25])
})

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
  const answer = await chatHandler(partsOf(prepared, happened))(call)
  const events = (answer as EventStream).events[Symbol.asyncIterator]()
  await events.next()
  await events.next()
  await events.return?.()
  expect(happened).toEqual(["stopped", "recorded 7 tokens"])
})
