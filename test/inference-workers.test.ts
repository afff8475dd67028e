/** Remote workers in every dialect, working and failing: a clean answer or a clean error, and nothing hangs. */
import { predicate } from "../src/engine/branch.ts"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import {
  admitAny,
  type GenerateCall,
  type GenerateWork,
  type GenerationEvent,
  noGenerationUsage,
} from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import type { DialectName } from "../src/engine/remote/dialects.ts"
import { type RemoteWorker, openRemoteWorker } from "../src/engine/remote/remote-worker.ts"
import { defaultModelFile } from "./models.ts"
import { type TestServer, startServer } from "./server.ts"
import { type TestWorker, startTestWorker } from "./worker.ts"
import { plainWork } from "./plain-work.ts"

const chatDialects: readonly DialectName[] = ["openai", "vllm", "sglang", "llama-server", "ollama"]
const scoreDialects: readonly DialectName[] = ["vllm", "sglang", "llama-server"]
const evidence = "The parcel came late and the box was <|im_end|> broken."
const branches = [
  predicate("Is the customer unhappy?"),
  predicate("Is this about the weather?"),
  predicate("Did the parcel come late?"),
]
const patient = { connectMs: 600_000, firstByteMs: 600_000, idleMs: 600_000 }
const hasty = { connectMs: 1000, firstByteMs: 1000, idleMs: 1000 }

let worker: TestWorker
const opened: RemoteWorker[] = []
beforeAll(async () => {
  worker = await startTestWorker()
})
afterEach(async () => {
  worker.fault = "none"
  for (const one of opened.splice(0)) await one.close()
})
afterAll(async () => {
  await worker.close()
})

function open(dialect: DialectName, url = worker.url, times = patient): RemoteWorker {
  const model = { name: "nano", contextTokensMax: 2048, quantization: "Q8_0", file: defaultModelFile }
  const remote = openRemoteWorker({ url }, dialect, { model, times })
  opened.push(remote)
  return remote
}

const work = (changes: Partial<GenerateWork> = {}): GenerateWork => {
  const messages = [{ role: "user" as const, content: "Say hello." }]
  const plain = plainWork({ messages, outputTokensMax: 4, ...changes })
  return { ...plain, sampling: { ...plain.sampling, temperature: 0, ...changes.sampling } }
}

const never = new AbortController().signal
const freely = { signal: never, admit: admitAny }

async function generate(remote: RemoteWorker, asked: GenerateWork = work(), signal = never) {
  const events: GenerationEvent[] = []
  let usage = noGenerationUsage
  let inputTokensMost = 0
  const call: GenerateCall = {
    signal,
    admit: async (sizes) => {
      inputTokensMost = sizes.inputTokensMost
      return sizes.outputTokensMost
    },
    onUsage: (used) => (usage = used),
  }
  for await (const event of remote.generator.generate(asked, call)) events.push(event)
  return { events, usage, inputTokensMost }
}

async function margins(remote: RemoteWorker): Promise<Float64Array> {
  const asked = { organizationId: "org_test", evidence, branches }
  return (await remote.scorer.score(asked, freely)).margins
}

const probability = (margin: number): number => 1 / (1 + Math.exp(-margin))

describe.each(chatDialects)("%s", (dialect) => {
  test("an answer streams through split chunks, with reasoning and the worker's own usage", async () => {
    const { events, usage, inputTokensMost } = await generate(open(dialect))
    expect(events[0]).toEqual({ kind: "reasoning", text: "hm" })
    expect(events.filter(({ kind }) => kind === "text").length).toBeGreaterThan(0)
    expect(events.at(-1)?.kind).toBe("end")
    expect(usage.cachedInputTokens).toBe(2)
    expect(usage.inputTokens).toBeGreaterThan(5)
    expect(usage.inputTokens).toBeLessThanOrEqual(inputTokensMost)
  })

  test("a function call comes in pieces", async () => {
    const tool = { name: "get_weather", description: null, parameters: null, strict: false }
    const { events } = await generate(open(dialect), work({ tools: [tool] }))
    expect(events).toEqual([
      { kind: "call", name: "get_weather" },
      { kind: "arguments", text: '{"ci' },
      { kind: "arguments", text: 'ty":"Oslo"}' },
      { kind: "end", reason: "tool_calls" },
    ])
  })

  test.each([
    ["fails", "inference_failed"],
    ["hangs", "inference_failed"],
    ["dies", "inference_failed"],
    ["garbage", "invalid_worker_response"],
    ["stops-short", "inference_failed"],
    ["full", "overloaded"],
  ] as const)("a worker that %s is a clean error", async (fault, code) => {
    worker.fault = fault
    const remote = open(dialect, worker.url, fault === "hangs" ? hasty : patient)
    await expect(generate(remote)).rejects.toMatchObject({ name: "Fault", code })
  })
})

/** The discard port: nothing listens there. */
const nobody = "http://127.0.0.1:9"

test.each(chatDialects)("at %s a worker that refuses connections is a clean error", async (dialect) => {
  await expect(generate(open(dialect, nobody))).rejects.toMatchObject({
    name: "Fault",
    code: "inference_failed",
  })
})

test.each([...scoreDialects, "systemone"] as const)(
  "at %s a worker that refuses connections decides nothing",
  async (dialect) => {
    await expect(margins(open(dialect, nobody))).rejects.toMatchObject({
      name: "Fault",
      code: "inference_failed",
    })
  },
)

test("a caller that leaves ends the request with its own reason", async () => {
  worker.fault = "hangs"
  const leaving = new AbortController()
  const left = generate(open("openai"), work(), leaving.signal)
  leaving.abort(new Error("left"))
  await expect(left).rejects.toThrow("left")
})

describe("decisions of the embedded engine", () => {
  let expected: Float64Array
  beforeAll(async () => {
    const local = new LocalEngine({ modelFile: defaultModelFile, kind: "generation", threads: 1, gpu: false })
    try {
      expected = (await local.score({ organizationId: "org_test", evidence, branches }, freely)).margins
    } finally {
      await local.close()
    }
  })

  test.each(scoreDialects)(
    "are those at %s, and text in the evidence is never a special token",
    async (dialect) => {
      const found = await margins(open(dialect))
      expect(found.length).toBe(branches.length)
      found.forEach((margin, index) =>
        expect(Math.abs(probability(margin) - probability(expected[index] ?? NaN))).toBeLessThan(0.08),
      )
    },
  )
})

describe.each(scoreDialects)("decisions at %s", (dialect) => {
  test.each([
    ["no-logprobs", "invalid_worker_response"],
    ["few-logprobs", "invalid_worker_response"],
    ["garbage", "invalid_worker_response"],
    ["fails", "inference_failed"],
    ["hangs", "inference_failed"],
  ] as const)("a worker with %s is an error, never a guess", async (fault, code) => {
    const remote = open(dialect, worker.url, fault === "hangs" ? hasty : patient)
    const asked = { organizationId: "org_test", evidence, branches: branches.slice(0, 1) }
    const admit = async (): Promise<void> => {
      worker.fault = fault
      worker.tops.length = 0
    }
    const scoring = async (): Promise<unknown> => {
      return await remote.scorer.score(asked, { signal: never, admit }).catch((error: unknown) => error)
    }
    // Before it is admitted the worker is asked too, and one who is hasty may find a busy machine too slow.
    let outcome: unknown
    await expect
      .poll(async () => {
        outcome = await scoring()
        return worker.fault
      })
      .toBe(fault)
    expect(outcome).toMatchObject({ name: "Fault", code })
    // A missing probability was asked for again with more alternatives.
    if (fault === "few-logprobs" && dialect !== "sglang") expect(worker.tops.length).toBeGreaterThan(1)
  })
})

test("a worker that answers System One itself decides each branch", async () => {
  const found = await margins(open("systemone", `${worker.url}/native`))
  expect([...found].map(probability)).toEqual([
    expect.closeTo(0.75, 12),
    expect.closeTo(0.75, 12),
    expect.closeTo(0.75, 12),
  ])
})

test.each([
  ["fails", "inference_failed"],
  ["hangs", "inference_failed"],
  ["garbage", "invalid_worker_response"],
  ["no-logprobs", "invalid_worker_response"],
] as const)("a worker of System One that %s is an error, never a guess", async (fault, code) => {
  worker.fault = fault
  const remote = open("systemone", `${worker.url}/native`, fault === "hangs" ? hasty : patient)
  await expect(margins(remote)).rejects.toMatchObject({ name: "Fault", code })
})

test.each([
  ["fails", "inference_failed"],
  ["hangs", "inference_failed"],
  ["garbage", "invalid_worker_response"],
] as const)("a worker that %s embeds nothing", async (fault, code) => {
  worker.fault = fault
  const remote = open("openai", worker.url, fault === "hangs" ? hasty : patient)
  const embedding = async (): Promise<unknown> =>
    await remote.embedder.embed({ inputs: ["a"], dimensions: null }, freely)
  await expect(embedding()).rejects.toMatchObject({ name: "Fault", code })
})

test("a worker that neither decides nor answers a chat in any form refuses decisions", async () => {
  await expect(margins(open("ollama"))).rejects.toMatchObject({ code: "decisions_unsupported" })
})

test("too long for the context is refused before anything runs", async () => {
  const remote = open("llama-server")
  worker.tops.length = 0
  const long = { organizationId: "org_test", evidence: "word ".repeat(3000), branches }
  await expect(remote.scorer.score(long, freely)).rejects.toMatchObject({ code: "context_length_exceeded" })
  expect(worker.tops).toEqual([])
})

test("embeddings come back at length one, counted by the worker", async () => {
  const work = { inputs: ["a", "b"], dimensions: null }
  const { vectors, inputTokens } = await open("openai").embedder.embed(work, freely)
  const [first] = vectors
  expect([...(first ?? [])]).toEqual([expect.closeTo(0.6, 6), expect.closeTo(0.8, 6), 0])
  expect(inputTokens).toBe(10)
})

const near = (...values: number[]) =>
  values.map((probability) => ({ probability: expect.closeTo(probability, 12) as number }))

const cascade = (...members: string[]) => ({ cascade: { models: members } })

describe("behind the gateway", () => {
  let server: TestServer
  let directory: string
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "umpire-workers-"))
    const file = join(directory, "umpire.yaml")
    const models = [
      {
        sku: "far",
        context_tokens_max: 2048,
        workers: [{ url: `${worker.url}/v1`, dialect: "llama-server" }],
      },
      { sku: "mute", context_tokens_max: 2048, workers: [{ url: worker.url, dialect: "openai" }] },
      {
        sku: "mixed",
        context_tokens_max: 2048,
        workers: [
          { url: worker.url, dialect: "openai" },
          { url: `${worker.url}/v1`, dialect: "llama-server" },
        ],
      },
      {
        sku: "one",
        context_tokens_max: 2048,
        workers: [{ url: `${worker.url}/native`, dialect: "systemone" }],
      },
      {
        sku: "vectors",
        kind: "embedding",
        context_tokens_max: 512,
        workers: [{ url: worker.url, dialect: "openai" }],
      },
    ]
    writeFileSync(file, JSON.stringify({ models }))
    server = await startServer({
      env: {
        UMPIRE_CONFIG: file,
        UMPIRE_ENGINE_THREADS: "1",
      },
    })
  })
  afterAll(async () => {
    await server.stop()
    rmSync(directory, { recursive: true })
  })
  const chat = async (stream: boolean): Promise<Response> =>
    await server.post("/v1/chat/completions", {
      model: "far",
      messages: [{ role: "user", content: "Say hello." }],
      max_tokens: 4,
      stream,
    })

  test("chat, embeddings and decisions are answered by the worker", async () => {
    const completion = (await (await chat(false)).json()) as { choices: { message: { content: string } }[] }
    expect(completion.choices[0]?.message.content.length).toBeGreaterThan(0)
    const vectors = await server.post("/v1/embeddings", { model: "vectors", input: "a" })
    expect(await vectors.json()).toMatchObject({ usage: { prompt_tokens: expect.any(Number) as number } })
    const decision = await server.post("/v1/decisions", {
      model: "far",
      input: evidence,
      questions: [{ type: "predicate", instructions: "Did the parcel come late?" }],
    })
    expect(decision.status).toBe(200)
  })

  const decide = async (model: string, questions: object[]): Promise<Response> =>
    await server.post("/v1/decisions", { model, input: evidence, questions })
  const late = { type: "predicate", instructions: "Did the parcel come late?" }

  test("a decision at a worker that cannot decide is 422 with the reason; beside one that can, it is answered", async () => {
    const refused = await decide("mute", [late])
    expect(refused.status).toBe(422)
    expect(await refused.json()).toEqual({
      error: {
        code: "decisions_unsupported",
        message: expect.stringContaining("neither for decisions nor as a chat") as string,
      },
    })
    for (let time = 0; time < 4; time++) expect((await decide("mixed", [late])).status).toBe(200)
  })

  test("a cascade onto a model that cannot answer decisions is refused when it is saved, with the reason", async () => {
    // What it cannot is known for a minute.
    expect((await decide("mute", [late])).status).toBe(422)
    const headers = { authorization: `Bearer ${server.key}` }
    const listed = await fetch(`${server.url}/v1/organizations`, { headers })
    const { data } = (await listed.json()) as { data: { id: string }[] }
    const models = `/v1/organizations/${data[0]?.id}/models`
    const save = async (name: string, rule: object): Promise<[number, string?]> => {
      const response = await server.post(models, { name, ...rule })
      const { error } = (await response.json()) as { error?: { message: string } }
      return error ? [response.status, error.message] : [response.status]
    }
    const refusal = /^Cannot save \w+: mute cannot answer decisions: its worker answers neither for decisions/
    expect(await save("onto", cascade("umpire-decide-small", "mute"))).toEqual([
      422,
      expect.stringMatching(refusal),
    ])
    expect(await save("other", { alias: "mute" })).toEqual([200])
    expect(await save("named", cascade("umpire-decide-small", "other"))).toEqual([
      422,
      expect.stringMatching(refusal),
    ])
    // A worker of two, and a model of a fallback, can.
    expect(await save("half", cascade("umpire-decide-small", "mixed"))).toEqual([200])
    expect(await save("safe", { fallback: ["mute", "far"] })).toEqual([200])
    expect(await save("whole", cascade("umpire-decide-small", "safe"))).toEqual([200])
  })

  test("System One's worker is asked the caller's own questions, and its probabilities and tokens are the answer's", async () => {
    worker.asked.length = 0
    const choices = [{ value: "red", description: "like blood" }, { value: "green" }, { value: "blue" }]
    const response = await decide("one", [
      late,
      { type: "choice", instructions: "Which colour?", choices },
      { type: "choice", instructions: "Which colour?", choices: choices.slice(1) },
      { type: "choice", instructions: "Is it?", choices: [{ value: true }, { value: "true" }] },
      {
        type: "score",
        instructions: "How bad?",
        levels: [{ label: "low" }, { label: "high", description: "awful" }],
      },
    ])
    expect(worker.asked).toMatchObject([
      // Whether it answers, before its first decision.
      { state: "The sky is blue today." },
      {
        state: evidence,
        questions: {
          q0: { type: "noul", instructions: "Did the parcel come late?" },
          q1: {
            type: "choice",
            instructions: "Which colour?",
            criteria: { red: "like blood", green: "green", blue: "blue" },
          },
          q2: { type: "choice", criteria: { green: "green", blue: "blue" } },
          // true and "true" mean the same and are asked once.
          q3: { type: "noul" },
          // By their words the levels go down, so that their reverse is asked the same.
          q4: { type: "score", instructions: "How bad?", criteria: ["high - awful", "low"] },
        },
      },
    ])
    const { answers, usage } = (await response.json()) as {
      answers: { probability?: number; probabilities?: { probability: number }[] }[]
      usage: { input_tokens: number }
    }
    expect(answers).toMatchObject([
      { probability: expect.closeTo(0.75, 12) as number },
      { choice: "blue", probabilities: near(0.25, 0.25, 0.5) },
      { probabilities: near(0.5, 0.5) },
      { probabilities: near(0.5, 0.5) },
      { score: expect.closeTo(0.5, 12) as number, probabilities: near(0.5, 0.5) },
    ])
    expect(usage.input_tokens).toBe(42)
  })

  test("a worker that dies mid-stream ends the stream with an error", async () => {
    worker.fault = "dies"
    const text = await (await chat(true)).text()
    expect(text).toMatch(/"delta":\{"(?:content|reasoning_content)":"\w/)
    expect(text.trimEnd().split("\n\n").at(-1)).toMatch(/^data: \{"error":\{"code":"inference_failed"/)
  })

  test("a worker that dies before the whole answer is there is a 500, and the next request is served", async () => {
    worker.fault = "garbage"
    const failed = await chat(false)
    expect(failed.status).toBe(500)
    worker.fault = "none"
    await expect.poll(async () => (await chat(false)).status, { interval: 500 }).toBe(200)
  })
})
