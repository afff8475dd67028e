/** How a streamed chat completion is paid for, and how it ends when its reader leaves. */
import { inferenceCall, inferenceDeps } from "../../../test/in-memory-gateway.ts"
import { expect, test } from "vitest"
import type { EventStream } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { noGenerationUsage } from "../../engine/engine.ts"
import { chatHandler } from "./chat.ts"
import type { Usage } from "../meter.ts"
import type { Routed } from "../routing/router.ts"
import type { InferenceDeps } from "./inference.ts"

const call = inferenceCall()
const body = { model: "m", stream: true, messages: [{ role: "user", content: "hello" }] }

/** A gateway which notes what happens. */
function partsOf(
  generate: Routed["generate"],
  happened: string[],
  reserve: (model: unknown, most: Usage) => Promise<void> = async () => undefined,
  asked: object = body,
): InferenceDeps {
  const finish = async ({ outputTokens }: Usage): Promise<void> =>
    void happened.push(`recorded ${outputTokens} tokens`)
  return inferenceDeps({ engines: { generate }, sequence: { reserve, finish }, body: asked })
}

test.each([
  "insufficient_credits",
  "spend_limit_exceeded",
  "key_budget_exceeded",
  "tag_budget_exceeded",
] as const)("an answer without a limit is as long as can be paid for: %s", async (code) => {
  const ran: number[] = []
  const generate: Routed["generate"] = async function* (_, { admit }) {
    ran.push(await admit({ inputTokensMost: 1, outputTokensMost: 100 }))
    yield { kind: "end", reason: "length" }
  }
  const reserve = async (_: unknown, { outputTokens }: Usage): Promise<void> => {
    if (outputTokens > 25) throw new Fault(code, "Cannot run the request")
  }
  const answer = await chatHandler(partsOf(generate, [], reserve))(call)
  for await (const _ of (answer as EventStream).events);
  expect(ran).toEqual([25])
})

test("a reader that leaves between two events stops the model, and then its usage is recorded", async () => {
  const happened: string[] = []
  const generate: Routed["generate"] = async function* (_, { admit, onUsage }) {
    await admit({ inputTokensMost: 1, outputTokensMost: 10 })
    try {
      for (;;) yield { kind: "text", text: "x", logprobs: null }
    } finally {
      onUsage({ ...noGenerationUsage, outputTokens: 7 })
      happened.push("stopped")
    }
  }
  const answer = await chatHandler(partsOf(generate, happened))(call)
  const events = (answer as EventStream).events[Symbol.asyncIterator]()
  await events.next()
  await events.next()
  await events.return?.()
  expect(happened).toEqual(["stopped", "recorded 7 tokens"])
})

test("several answers are begun one after the other, reserved together, and stopped when one cannot begin", async () => {
  const happened: string[] = []
  const reserve = async (_: unknown, { outputTokens }: Usage): Promise<void> =>
    void happened.push(`reserved ${outputTokens} tokens`)
  const answers = async (isBroken: boolean): Promise<unknown> => {
    let begun = 0
    const generate: Routed["generate"] = async function* (_, { admit, signal }) {
      const name = `answer ${++begun}`
      happened.push(`${name} begins`)
      if (isBroken && begun === 2) throw new Fault("inference_failed", "Cannot begin")
      try {
        await admit({ inputTokensMost: 1, outputTokensMost: 10 * begun })
        signal.throwIfAborted()
        yield { kind: "end", reason: "stop" }
      } finally {
        happened.push(`${name} ends`)
      }
    }
    return await chatHandler(partsOf(generate, [], reserve, { ...body, stream: false, n: 2 }))(call)
  }
  await answers(false)
  expect(happened).toEqual([
    "answer 1 begins",
    "answer 2 begins",
    "reserved 40 tokens",
    "answer 1 ends",
    "answer 2 ends",
  ])
  happened.length = 0
  await expect(answers(true)).rejects.toMatchObject({ code: "inference_failed" })
  expect(happened).toEqual(["answer 1 begins", "answer 2 begins", "answer 1 ends"])
})
