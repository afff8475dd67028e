/** What the parameters of inference requests do, on a model whose every next token is known. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { ChatChunk, ChatCompletion, ChatRequest, choicesMax, stopsMax } from "../src/contract/openai/chat.ts"
import { parametersOf } from "../src/contract/openai/parameters.ts"
import { ResponseEvent, ResponseObject } from "../src/contract/openai/responses.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { readRecords } from "./gateways.ts"
import { type ScriptedModel, scriptedModel } from "./scripted-model.ts"
import { type TestServer, startServer } from "./server.ts"

const words = ["One ", "two th", "ree fo", "ur."]
const firstCall = [
  "\n<tool_call>",
  '\n{"name": "',
  "get_weather",
  '", "arguments": ',
  '{"city": "Oslo"',
  "}}",
  "\n</tool_call>",
]
const secondCall = ["\n\n<tool_call>", '\n{"name": "get_time", "arguments": {}', "}\n</tool_call>"]
const pieces = [...words, ...firstCall, ...secondCall]
const whole = pieces.join("")
/** The braces that end the arguments: after them the call is whole. */
const tokensToFirstCall = pieces.indexOf("}}") + 1
const endlessPieces = ["on ", "and "]
const pollMs = 25
const recordWithinMs = 60_000

const tools = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
  { name: "get_time", parameters: { type: "object", properties: {}, additionalProperties: false } },
]

let server: TestServer
let scripted: ScriptedModel
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-parameters-"))
  scripted = await scriptedModel({ pieces })
  const endless = await scriptedModel({ pieces: endlessPieces, endless: true })
  const config = join(folder, "umpire.yaml")
  const models = [
    { sku: "scripted", file: scripted.file },
    { sku: "endless", file: endless.file },
  ]
  writeFileSync(config, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const bodyOf = (given: object): object => ({
  model: "scripted",
  messages: [{ role: "user", content: "Go on." }],
  temperature: 0,
  ...given,
})

async function chat(given: object): Promise<ChatCompletion> {
  const response = await server.post("/v1/chat/completions", bodyOf(given))
  expect(response.status).toBe(200)
  return ChatCompletion.parse(await response.json())
}

async function refusal(given: object): Promise<unknown> {
  const response = await server.post("/v1/chat/completions", bodyOf(given))
  expect(response.status).toBe(400)
  return ((await response.json()) as { error: unknown }).error
}

async function chunks(given: object): Promise<ChatChunk[]> {
  const response = await server.post("/v1/chat/completions", bodyOf({ ...given, stream: true }))
  const lines = (await response.text()).split("\n\n").filter((line) => line.startsWith("data: {"))
  return lines.map((line) => ChatChunk.parse(JSON.parse(line.slice("data: ".length))))
}

const textOf = (completion: ChatCompletion, index = 0): string | null | undefined =>
  completion.choices[index]?.message.content

describe("stop", () => {
  test.each([
    ["one text that two tokens share", "three", "One two ", 3],
    ["the first of several in the text, not in the list", ["four", "two"], "One ", 2],
    ["one that a single token holds", "ne", "O", 1],
  ] as const)("%s ends the answer before it", async (_what, stop, text, tokens) => {
    const completion = await chat({ stop })
    expect(textOf(completion)).toBe(text)
    expect(completion.choices[0]?.finish_reason).toBe("stop")
    expect(completion.usage.completion_tokens).toBe(tokens)
    const streamed = await chunks({ stop })
    expect(streamed.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(text)
  })

  test("one that is only begun takes nothing away, also at the very end", async () => {
    expect(textOf(await chat({ stop: ["threw", `${whole.slice(-5)}!`] }))).toBe(whole)
  })

  test(`is taken ${stopsMax} times and not once more`, async () => {
    const stop = Array.from({ length: stopsMax }, (_, index) => `none ${index}`)
    expect(textOf(await chat({ stop }))).toBe(whole)
    expect(await refusal({ stop: [...stop, "one more"] })).toMatchObject({ param: "stop" })
  })
})

describe("logprobs", () => {
  test("at temperature 0 are the model's own, token by token, with as many alternatives as asked", async () => {
    const completion = await chat({ logprobs: true, top_logprobs: 3, max_tokens: words.length })
    const content = completion.choices[0]?.logprobs?.content ?? []
    expect(content.map(({ token }) => token)).toEqual(words)
    for (const [index, { token, logprob, bytes, top_logprobs }] of content.entries()) {
      expect(logprob).toBeCloseTo(scripted.logprobs[index] ?? NaN, 3)
      expect(bytes).toEqual([...Buffer.from(token)])
      expect(top_logprobs).toHaveLength(3)
      expect(top_logprobs[0]).toMatchObject({ token, logprob })
      const sorted = top_logprobs.map((one) => one.logprob).toSorted((a, b) => b - a)
      expect(top_logprobs.map((one) => one.logprob)).toEqual(sorted)
      expect(sorted.reduce((sum, one) => sum + Math.exp(one), 0)).toBeLessThanOrEqual(1 + 1e-6)
    }
  })

  test("at temperature 1 the likeliest is as likely as at 0", async () => {
    const { choices } = await chat({
      logprobs: true,
      top_logprobs: 1,
      max_tokens: 1,
      temperature: 1,
      seed: 4,
    })
    const top = choices[0]?.logprobs?.content?.[0]?.top_logprobs[0]
    expect(top).toMatchObject({ token: words[0], logprob: expect.closeTo(scripted.logprobs[0] ?? NaN, 3) })
  })

  test("of text that waited for a stop come with it", async () => {
    const { choices } = await chat({ logprobs: true, stop: ["two three four?"], max_tokens: words.length })
    expect(choices[0]?.logprobs?.content?.map(({ token }) => token)).toEqual(words)
  })

  test("come with a response that includes them, and are the same", async () => {
    const response = await server.post("/v1/responses", {
      model: "scripted",
      input: "Go on.",
      temperature: 0,
      max_output_tokens: words.length,
      include: ["message.output_text.logprobs"],
      top_logprobs: 2,
      store: false,
    })
    const [item] = ResponseObject.parse(await response.json()).output
    const part = item?.type === "message" ? item.content[0] : undefined
    const logprobs = part && "logprobs" in part ? (part.logprobs ?? []) : []
    expect(logprobs.map(({ token }) => token)).toEqual(words)
    expect(logprobs[0]?.logprob).toBeCloseTo(scripted.logprobs[0] ?? NaN, 3)
    expect(logprobs[0]?.top_logprobs).toHaveLength(2)
  })

  test("are null unless asked for, and alternatives need them", async () => {
    expect((await chat({ max_tokens: 1 })).choices[0]?.logprobs).toBeNull()
    expect(await refusal({ top_logprobs: 2 })).toMatchObject({ param: "top_logprobs" })
    expect(await refusal({ logprobs: true, top_logprobs: 21 })).toMatchObject({ param: "top_logprobs" })
  })
})

/** Hot enough that the script is left sooner or later, where chance decides. */
const hot = { temperature: 1.5, max_tokens: 24 }

describe("logit_bias", () => {
  /** As the scripted model numbers them: 256 bytes, the special tokens, the pieces. */
  const [endOfText, endOfTurn, secondPiece] = [256, 258, 260]

  test("keeps a token from being written, and makes one come", async () => {
    expect(textOf(await chat({ logit_bias: { [secondPiece]: -100 }, max_tokens: 4 }))).not.toContain(words[1])
    const forced = await chat({ logit_bias: { [secondPiece]: 100 }, max_tokens: 2 })
    expect(textOf(forced)).toBe(`${words[1]}${words[1]}`)
  })

  test("keeps an answer from ending, too", async () => {
    const tokens = pieces.length + 3
    const ends = { [endOfText]: -100, [endOfTurn]: -100 }
    const completion = await chat({ logit_bias: ends, max_tokens: tokens })
    expect(completion.choices[0]?.finish_reason).toBe("length")
    expect(completion.usage.completion_tokens).toBe(tokens)
  })
})

describe("seed", () => {
  test("the same gives the same text, another may give another", async () => {
    const texts: (string | null | undefined)[] = []
    for (const seed of [1, 2, 3, 4]) {
      texts.push(textOf(await chat({ ...hot, seed })))
      expect(textOf(await chat({ ...hot, seed }))).toBe(texts.at(-1))
    }
    expect(new Set(texts).size).toBeGreaterThan(1)
  })
})

describe("n", () => {
  test("answers are numbered and seeded one after the other; the prompt is counted once", async () => {
    const one = await chat({ ...hot, seed: 11 })
    const next = await chat({ ...hot, seed: 12 })
    const three = await chat({ ...hot, seed: 11, n: 3 })
    expect(three.choices.map(({ index }) => index)).toEqual([0, 1, 2])
    expect(textOf(three, 0)).toBe(textOf(one))
    expect(textOf(three, 1)).toBe(textOf(next))
    expect(three.usage.prompt_tokens).toBe(one.usage.prompt_tokens)
    const alike = await chat({ n: 3 })
    expect(alike.usage.completion_tokens).toBe(3 * pieces.length)
  })

  test(`${choicesMax} are written, more than run side by side, and not one more`, async () => {
    const { choices } = await chat({ n: choicesMax, max_tokens: 2 })
    expect(choices.map((choice) => choice.message.content)).toEqual(
      Array.from({ length: choicesMax }, () => "One two th"),
    )
    expect(await refusal({ n: choicesMax + 1 })).toMatchObject({ param: "n" })
  })

  test("streamed answers each begin, go on and end", async () => {
    const streamed = (await chunks({ n: 2, max_tokens: 4 })).flatMap(({ choices }) => choices)
    for (const index of [0, 1]) {
      const own = streamed.filter((choice) => choice.index === index)
      expect(own[0]?.delta.role).toBe("assistant")
      expect(own.map(({ delta }) => delta.content ?? "").join("")).toBe(words.join(""))
      expect(own.at(-1)?.finish_reason).toBe("length")
    }
  })
})

const namesOf = ({ choices }: ChatCompletion): unknown[] | undefined =>
  choices[0]?.message.tool_calls?.map((call) =>
    call.type === "function" ? [call.function.name, call.function.arguments] : call,
  )

describe("parallel_tool_calls", () => {
  const offered = { tools: tools.map((tool) => ({ type: "function", function: tool })) }

  test("true lets a model call as often as it wants", async () => {
    const completion = await chat({ ...offered, parallel_tool_calls: true })
    expect(namesOf(completion)).toEqual([
      ["get_weather", '{"city": "Oslo"}'],
      ["get_time", "{}"],
    ])
    expect(textOf(completion)).toBe(words.join(""))
  })

  test("false ends the answer with its first call, and the engine with it", async () => {
    const completion = await chat({ ...offered, parallel_tool_calls: false })
    expect(namesOf(completion)).toEqual([["get_weather", '{"city": "Oslo"}']])
    expect(completion.choices[0]?.finish_reason).toBe("tool_calls")
    expect(completion.usage.completion_tokens).toBe(tokensToFirstCall)
  })

  test("false does so for a response, too", async () => {
    const response = await server.post("/v1/responses", {
      model: "scripted",
      input: "Go on.",
      temperature: 0,
      tools: tools.map((tool) => ({ type: "function", ...tool })),
      parallel_tool_calls: false,
      store: false,
    })
    const { output, status } = ResponseObject.parse(await response.json())
    expect(output.map((item) => (item.type === "function_call" ? item.name : item.type))).toEqual([
      "message",
      "get_weather",
    ])
    expect(status).toBe("completed")
  })
})

test("a response cut by its limit comes event by event, and its last says incomplete", async () => {
  const given = { model: "scripted", input: "Go on.", temperature: 0, max_output_tokens: 2, store: false }
  const response = await server.post("/v1/responses", { ...given, stream: true })
  const events = (await response.text())
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => ResponseEvent.parse(JSON.parse(block.split("\n")[1]?.slice("data: ".length) ?? "")))
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  const deltas = events.filter(({ type }) => type === "response.output_text.delta")
  expect(deltas.map((event) => ("delta" in event ? event.delta : "")).join("")).toBe("One two th")
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    ...deltas.map(() => "response.output_text.delta"),
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.incomplete",
  ])
  const last = events.at(-1)
  expect(last?.type === "response.incomplete" && last.response).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    usage: { output_tokens: 2 },
  })
})

test("parameters that are ignored change nothing", async () => {
  const ignored = parametersOf(ChatRequest).filter(({ treatment }) => treatment === "ignored")
  expect(ignored.map(({ name }) => name)).toEqual(expect.arrayContaining(["client_metadata", "service_tier"]))
  const given = Object.fromEntries(ignored.map(({ name }) => [name, { some: "value" }]))
  const { id: _id, created: _created, ...plain } = await chat({})
  const { id: _otherId, created: _otherCreated, ...other } = await chat(given)
  expect({ ...other, usage: null }).toEqual({ ...plain, usage: null })
})

/** The record of a request, which is written when the engine has stopped. */
async function recordOf(id: string): Promise<SequenceRecord> {
  const deadlineMs = performance.now() + recordWithinMs
  while (performance.now() < deadlineMs) {
    const found = (await readRecords(server.dataDirectory)).find(({ request_id }) => request_id === id)
    if (found) return found
    await wait(pollMs)
  }
  throw new Error(`No record of ${id}`)
}

describe("a client that vanishes from an answer without an end", () => {
  test("streamed over HTTP stops the engine, and what ran is charged", async () => {
    const gone = new AbortController()
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${server.key}`,
        "content-type": "application/json",
        "x-request-id": "gone-http",
      },
      body: JSON.stringify(bodyOf({ model: "endless", stream: true })),
      signal: gone.signal,
    })
    await response.body?.getReader().read()
    gone.abort()
    const record = await recordOf("gone-http")
    expect(record.result).toBe("cancelled")
    expect(record.output_tokens).toBeGreaterThan(0)
    expect(Number(record.cost_ticks)).toBeGreaterThan(0)
  })

  test("over a socket stops the engine, and what ran is charged", async () => {
    const before = (await readRecords(server.dataDirectory)).length
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${server.key}` },
    })
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject))
    socket.send(JSON.stringify({ type: "response.create", model: "endless", input: "Go.", store: false }))
    await new Promise<void>((resolve) =>
      socket.on("message", (text: Buffer) => {
        if (text.toString().includes("output_text.delta")) resolve()
      }),
    )
    socket.terminate()
    const written = async (): Promise<SequenceRecord | undefined> =>
      (await readRecords(server.dataDirectory))[before]
    await expect
      .poll(written, { timeout: recordWithinMs, interval: pollMs })
      .toMatchObject({ result: "cancelled", output_tokens: expect.any(Number) as number })
    expect((await written())?.output_tokens).toBeGreaterThan(0)
  })
})
