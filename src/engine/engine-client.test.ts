/** Every call of an engine over a channel that fails: a rejection for the caller, and none unhandled. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import { Connection } from "../base/peer/connection.ts"
import { type Channel, PeerGone, type ToPeer } from "../base/peer/peer.ts"
import { predicate } from "./branch.ts"
import { type EngineClient, engineClient } from "./engine-client.ts"
import type { EngineService, GenerationItem } from "./engine-service.ts"
import { admitAny, type Embedded, type GenerationUsage, noGenerationUsage, type Scored } from "./engine.ts"
import { sizesMsMax } from "./generate/local-engine.ts"
import { plainWork } from "../../test/plain-work.ts"

const never = new AbortController().signal
const scoreWork = { organizationId: "o", evidence: "e", branches: [predicate("a"), predicate("b")] }
const embedWork = { inputs: ["a"], dimensions: null }
const generateWork = plainWork()

const unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)
beforeEach(() => {
  unhandled.length = 0
  process.on("unhandledRejection", note)
})
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off("unhandledRejection", note)
  expect(unhandled).toEqual([])
})

/** What the peer answers to the first message and to the second; a message without an answer cannot be sent. */
type Answers = readonly { readonly item?: unknown; readonly output?: unknown; readonly silent?: true }[]

function connect(answers: Answers, sentKinds: string[] = [], msMax: number | null = null): EngineClient {
  let listener: { message(message: unknown): void; end(reason: string): void }
  let sent = 0
  const channel: Channel = {
    pid: undefined,
    listen: (message, end) => (listener = { message, end }),
    send(message: ToPeer) {
      sentKinds.push(message.kind)
      if (message.kind === "cancel")
        return void setImmediate(() =>
          listener.message({ kind: "failure", id: message.id, failure: { message: "cancelled" } }),
        )
      const answer = answers[sent++]
      if (!answer || !("id" in message)) throw new Error("cannot be sent")
      const { id } = message
      if (answer.silent) return
      setImmediate(() => {
        if ("item" in answer) listener.message({ kind: "item", id, item: answer.item })
        else listener.message({ kind: "output", id, output: answer.output })
      })
    },
    kill: () => listener.end("killed"),
  }
  return engineClient(new Connection<EngineService>(channel), "", () => msMax)
}

type Admit = () => Promise<never>

const score = async (client: EngineClient, admit: Admit | typeof admitAny = admitAny): Promise<Scored> =>
  await client.scorer.score(scoreWork, { signal: never, admit })

const embed = async (client: EngineClient, admit: Admit | typeof admitAny = admitAny): Promise<Embedded> =>
  await client.embedder.embed(embedWork, { signal: never, admit })

async function generate(client: EngineClient, admit: () => Promise<number> = async () => 4) {
  let usage = noGenerationUsage
  const onUsage = (used: GenerationUsage): void => void (usage = used)
  for await (const _ of client.generator.generate(generateWork, { signal: never, admit, onUsage }));
  return usage
}

const sizes: GenerationItem = { kind: "sizes", inputTokensMost: 3, outputTokensMost: 4 }
const calls: [string, (client: EngineClient, admit?: Admit) => Promise<unknown>, unknown][] = [
  ["score", score, 3],
  ["embed", embed, 3],
  ["generate", generate, sizes],
]

describe.each(calls)("%s", (_name, call, first) => {
  test("fails where its work cannot be sent", async () => {
    await expect(call(connect([]))).rejects.toThrow("cannot be sent")
  })

  test("fails where its run cannot be sent", async () => {
    await expect(call(connect([{ item: first }]))).rejects.toBeInstanceOf(PeerGone)
  })

  test("that is not admitted is cancelled, and fails with what its caller said", async () => {
    const sent: string[] = []
    const refused = call(connect([{ item: first }], sent), async () => {
      throw new Error("no credit")
    })
    await expect(refused).rejects.toThrow("no credit")
    expect(sent).toEqual(["call", "cancel"])
  })

  test.each([
    ["a size that is no number", [{ item: { kind: "sizes", inputTokensMost: "3" } }]],
    ["an end without a size", [{ output: null }]],
    ["a second size", [{ item: first }, { item: first }]],
  ])("fails where the peer answers %s", async (_what, answers: Answers) => {
    await expect(call(connect(answers))).rejects.toMatchObject({ code: "invalid_worker_response" })
  })
})

test.each([
  ["one margin too few", { margins: Float64Array.of(1), inputTokens: 3 }],
  ["one margin too many", { margins: Float64Array.of(1, 2, 3), inputTokens: 3 }],
  ["a margin that is no number", { margins: Float64Array.of(1, Number.NaN), inputTokens: 3 }],
  ["margins of another kind", { margins: [1, 2], inputTokens: 3 }],
  ["nothing", undefined],
  ["no count", { margins: Float64Array.of(1, 2) }],
  ["a reading without margins", { reading: { vector: null, modelVersion: "1" }, inputTokens: 3 }],
  [
    "a reading without a version",
    { margins: Float64Array.of(1, 2), inputTokens: 3, reading: { vector: null } },
  ],
  [
    "a vector of another kind",
    { margins: Float64Array.of(1, 2), inputTokens: 3, reading: { vector: [1], modelVersion: "1" } },
  ],
])("a score with %s is not used", async (_what, output) => {
  await expect(score(connect([{ item: 3 }, { output }]))).rejects.toMatchObject({
    code: "invalid_worker_response",
  })
})

test("a score is used as it was computed", async () => {
  const reading = { vector: Float32Array.of(1, 0), modelVersion: "1" }
  const output = { margins: Float64Array.of(0.1 + 0.2, -5e-324), inputTokens: 2, reading }
  expect(await score(connect([{ item: 3 }, { output }]))).toEqual(output)
})

test("a generation ends with what was used", async () => {
  const usage = { ...noGenerationUsage, outputTokens: 2 }
  expect(await generate(connect([{ item: sizes }, { output: usage }]))).toEqual(usage)
})

test("the sizes of a generation have 30 s; then the caller is told to try again and the work is cancelled", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  try {
    const sent: string[] = []
    const outcomes: unknown[] = []
    const preparing = generate(connect([{ silent: true }], sent, sizesMsMax)).catch((error: unknown) => error)
    void preparing.then((outcome) => outcomes.push(outcome))
    await vi.advanceTimersByTimeAsync(29_999)
    expect([sent, outcomes]).toEqual([["call"], []])
    await vi.advanceTimersByTimeAsync(1)
    expect(await preparing).toMatchObject({ code: "overloaded", retryAfterMs: 1000 })
    expect(sent).toEqual(["call", "cancel"])
  } finally {
    vi.useRealTimers()
  }
})

test("a generation that is aborted between two reads is cancelled at once", async () => {
  const event: GenerationItem = {
    kind: "events",
    events: [{ kind: "text", text: "a", logprobs: null }],
    usage: noGenerationUsage,
  }
  const sent: string[] = []
  const client = connect([{ item: sizes }, { item: event }], sent)
  const abort = new AbortController()
  const events = client.generator.generate(generateWork, {
    signal: abort.signal,
    admit: async () => 4,
    onUsage: () => undefined,
  })
  await events.next()
  abort.abort(new Error("enough"))
  expect(sent).toEqual(["call", "next", "cancel"])
})
