/** Anthropic's Messages API on the running server: its own client, its events one by one, its errors, and the model beneath. */
import Anthropic from "@anthropic-ai/sdk"
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { Message, MessageEvent } from "../src/contract/anthropic/messages.ts"
import { scriptedModel } from "./scripted-model.ts"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, type UpstreamAnswer, startUpstream, upstreamUsage } from "./upstream.ts"

let server: TestServer
let upstream: Upstream
let directory: string
let next: UpstreamAnswer = {}
beforeAll(async () => {
  upstream = await startUpstream(() => next)
  directory = mkdtempSync(join(tmpdir(), "umpire-messages-"))
  const file = join(directory, "umpire.yaml")
  const workers = [{ url: upstream.url, dialect: "openai" }]
  const counting = await scriptedModel({ pieces: ["one", " two", " three", " four"] })
  const models = [
    // A worker that failed is not asked again at once; those that are made to fail have names of their own.
    ...["far", "frail", "full"].map((sku) => ({ sku, context_tokens_max: 32_768, workers })),
    { sku: "counting", file: counting.file },
  ]
  writeFileSync(file, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: file } })
})
afterAll(async () => {
  await server.stop()
  await upstream.close()
  rmSync(directory, { recursive: true })
})

const version = { "anthropic-version": "2023-06-01" }
const client = (): Anthropic => new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 })
const hello = { model: "far", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] } as const
const send = async (body: object, headers: Record<string, string> = version): Promise<Response> =>
  await server.post("/v1/messages", { ...hello, ...body }, headers)

const weather = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: {
    type: "object" as const,
    properties: { city: { type: "string", maxLength: 12 } },
    required: ["city"],
    additionalProperties: false,
  },
}

/** Every event as it came, with its name checked. */
function eventsOf(text: string): MessageEvent[] {
  const blocks = text.split("\n\n").filter((block) => block !== "")
  return blocks.map((block) => {
    const [name, data] = block.split("\n")
    const event = MessageEvent.parse(JSON.parse(data?.replace("data: ", "") ?? ""))
    expect(name).toBe(`event: ${event.type}`)
    return event
  })
}

/** Runs of deltas written once, with their block. */
const shapeOf = (events: readonly MessageEvent[]): string[] =>
  events
    .map((event) => {
      if (event.type === "content_block_delta") return `${event.delta.type} ${event.index}`
      if (event.type === "content_block_start") return `start ${event.content_block.type} ${event.index}`
      return event.type === "content_block_stop" ? `stop ${event.index}` : event.type
    })
    .filter((name, index, all) => name !== all[index - 1])

const thoughtful: UpstreamAnswer = {
  reasoning: "The user wants the weather.",
  text: "Let me look that up for you.",
  calls: [
    { name: "get_weather", arguments: '{"city":"Oslo"}' },
    { name: "get_weather", arguments: '{"city":"Rome"}' },
  ],
}

const content = (given: { content: readonly object[] }): object[] =>
  given.content.map((block) => ({ ...block, id: "" }))

describe("streams", () => {
  test("thoughts, text and two calls come in the promised order, each block whole before the next", async () => {
    next = thoughtful
    const tools = [weather]
    const response = await send({ stream: true, tools, thinking: { type: "enabled", budget_tokens: 1024 } })
    const events = eventsOf(await response.text())
    expect(shapeOf(events)).toEqual([
      "message_start",
      "start thinking 0",
      "thinking_delta 0",
      "signature_delta 0",
      "stop 0",
      "start text 1",
      "text_delta 1",
      "stop 1",
      "start tool_use 2",
      "input_json_delta 2",
      "stop 2",
      "start tool_use 3",
      "input_json_delta 3",
      "stop 3",
      "message_delta",
      "message_stop",
    ])
    const last = events.at(-2)
    expect(last).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { input_tokens: upstreamUsage.input, output_tokens: upstreamUsage.output },
    })
  })

  test("what the client puts together from a stream is what it is answered without one", async () => {
    next = thoughtful
    const body = { ...hello, messages: [...hello.messages], tools: [weather] }
    const whole = Message.parse(await (await send({ tools: [weather] })).json())
    const streamed = await client().messages.stream(body).finalMessage()
    expect(content(streamed)).toEqual(content(whole))
    expect(streamed.stop_reason).toBe(whole.stop_reason)
    expect(whole.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use", "tool_use"])
    expect(whole.content[2]).toMatchObject({ input: { city: "Oslo" } })
  })

  test("a worker that breaks off ends the stream with an error event, which the client throws", async () => {
    next = { text: "Hello there, this breaks off.", breaksAfter: 3 }
    const text = await (await send({ model: "frail", stream: true })).text()
    const last = text.trimEnd().split("\n\n").at(-1)?.split("\n") ?? []
    expect(last[0]).toBe("event: error")
    expect(JSON.parse(last[1]?.replace("data: ", "") ?? "")).toMatchObject({
      type: "error",
      error: { type: "api_error", code: "inference_failed" },
    })
    const failing = client().messages.stream({ ...hello, messages: [...hello.messages], model: "frail" })
    await expect(failing.finalMessage()).rejects.toThrow(Anthropic.APIError)
  })
})

test("a tool loop: the call, its result and the system's words reach the worker as a chat's do", async () => {
  next = { calls: [{ name: "get_weather", arguments: '{"city":"Oslo"}' }] }
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Weather in Oslo?" }]
  const system: Anthropic.TextBlockParam[] = [
    { type: "text", text: "Be brief." },
    { type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } },
  ]
  const ask = async (): Promise<Anthropic.Message> =>
    await client().messages.create({
      model: "far",
      max_tokens: 50,
      system,
      messages,
      tools: [weather],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    })
  const called = await ask()
  expect(called.stop_reason).toBe("tool_use")
  const [use] = called.content
  if (use?.type !== "tool_use") throw new Error("it did not call")
  messages.push({ role: "assistant", content: called.content })
  messages.push({
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: use.id, content: [{ type: "text", text: "down" }], is_error: true },
      { type: "text", text: "Go on." },
    ],
  })
  next = { text: "It is sunny." }
  const answer = await ask()
  expect(answer).toMatchObject({ stop_reason: "end_turn", content: [{ type: "text", text: "It is sunny." }] })
  expect(upstream.requests.at(-1)).toMatchObject({
    max_completion_tokens: 50,
    parallel_tool_calls: false,
    messages: [
      { role: "system", content: "Be brief.\nBe kind." },
      { role: "user", content: "Weather in Oslo?" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: use.id, function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }],
      },
      { role: "tool", tool_call_id: use.id, content: "Error: down" },
      { role: "user", content: "Go on." },
    ],
  })
})

test("tools that Anthropic runs itself are dropped and named; demanded, they are refused", async () => {
  next = { text: "Fine." }
  const tools = [{ type: "web_search_20250305", name: "web_search" }, weather]
  const response = await send({ tools })
  expect(response.headers.get("x-umpire-tools-dropped")).toBe("web_search_20250305")
  const [offered, ...more] = upstream.requests.at(-1)?.tools ?? []
  expect([offered?.function.name, more]).toEqual(["get_weather", []])
  const demanded = await send({ tools, tool_choice: { type: "tool", name: "web_search" } })
  expect(demanded.status).toBe(400)
})

/** What each type of block comes to: a type that Anthropic's own client gets does not compile here. */
const blockTypes: Record<Anthropic.ContentBlockParam["type"], "read" | "dropped"> = {
  text: "read",
  image: "read",
  document: "read",
  search_result: "read",
  thinking: "read",
  redacted_thinking: "read",
  tool_use: "read",
  tool_result: "read",
  server_tool_use: "dropped",
  web_search_tool_result: "dropped",
  web_fetch_tool_result: "dropped",
  code_execution_tool_result: "dropped",
  bash_code_execution_tool_result: "dropped",
  text_editor_code_execution_tool_result: "dropped",
  tool_search_tool_result: "dropped",
  container_upload: "dropped",
}

describe("conversations that began at Anthropic", () => {
  const asked = { role: "user", content: "And now?" }
  const hosted = Object.entries(blockTypes).flatMap(([type, how]) => (how === "dropped" ? [{ type }] : []))

  test("what its own tools were asked and found is left out and named, each type once", async () => {
    next = { text: "Fine." }
    const said = [...hosted, ...hosted, { type: "text", text: "It is cold." }]
    const response = await send({
      messages: [...hello.messages, { role: "assistant", content: said }, asked],
    })
    expect([response.status, response.headers.get("x-umpire-items-dropped")]).toEqual([
      200,
      hosted.map(({ type }) => type).join(", "),
    ])
    expect(upstream.requests.at(-1)?.messages).toMatchObject([
      { content: "Hello" },
      { role: "assistant", content: "It is cold." },
      asked,
    ])
  })

  test("what is left must still end with the user, and an unknown block is refused", async () => {
    const upload = { type: "container_upload", file_id: "file_1" }
    for (const content of [[upload], [{ type: "nonsense" }]])
      expect((await send({ messages: [{ role: "user", content }] })).status).toBe(400)
  })

  test("what was searched or put together elsewhere is read as its text", async () => {
    next = { text: "Fine." }
    const text = { type: "text" as const, text: "Parcels take two days." }
    const found = {
      type: "search_result" as const,
      source: "https://a.example",
      title: "Delivery",
      content: [text],
    }
    const document = {
      type: "document" as const,
      source: { type: "content" as const, content: [text, text] },
    }
    const messages: Anthropic.MessageParam[] = [
      { role: "user", content: [found, document] },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "search", input: {} }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            content: [{ type: "tool_reference", tool_name: "get_weather" }, found],
          },
        ],
      },
    ]
    await client().messages.create({ ...hello, messages })
    const read = "Delivery\nhttps://a.example\nParcels take two days."
    expect(upstream.requests.at(-1)?.messages).toMatchObject([
      { role: "user", content: `${read}\nParcels take two days.\nParcels take two days.` },
      { role: "assistant" },
      { role: "tool", content: `get_weather\n${read}` },
    ])
  })
})

describe("errors", () => {
  test.each<[string, object, Record<string, string>, number, string, RegExp]>([
    ["no version", {}, {}, 400, "invalid_request_error", /anthropic-version/],
    ["an unknown version", {}, { "anthropic-version": "1" }, 400, "invalid_request_error", /2023-06-01/],
    [
      "an unknown key",
      {},
      { ...version, authorization: "Bearer no" },
      401,
      "authentication_error",
      /unknown/,
    ],
    ["an unknown model", { model: "none" }, version, 404, "not_found_error", /model/],
    ["a model that cannot chat", { model: "umpire-decide" }, version, 404, "not_found_error", /./],
    ["no limit", { max_tokens: undefined }, version, 400, "invalid_request_error", /max_tokens/],
    ["no message", { messages: [] }, version, 400, "invalid_request_error", /messages/],
    ["an unknown field", { nonsense: 1 }, version, 400, "invalid_request_error", /nonsense/],
    ["17 stops", { stop_sequences: Array(17).fill("x") }, version, 400, "invalid_request_error", /stop_seq/],
    ["no JSON", { toJSON: () => "{" }, version, 400, "invalid_request_error", /./],
    [
      "an image",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "" } }],
          },
        ],
      },
      version,
      400,
      "invalid_request_error",
      /does not read images/,
    ],
    [
      "an answer begun",
      { messages: [...hello.messages, { role: "assistant", content: "I" }] },
      version,
      400,
      "invalid_request_error",
      /end with a message of the user/,
    ],
    [
      "a result without its call",
      { messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1" }] }] },
      version,
      400,
      "invalid_request_error",
      /toolu_1/,
    ],
  ])("%s", async (_, body, headers, status, type, message) => {
    const response = await send(body, headers)
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({
      type: "error",
      error: {
        type,
        message: expect.stringMatching(message) as string,
        code: expect.any(String) as string,
        details: { error_code: expect.any(String) as string },
      },
      request_id: response.headers.get("x-request-id"),
    })
  })

  test("a worker that is full is overloaded_error, and the client knows its kind", async () => {
    next = { status: 429 }
    const response = await send({ model: "full" })
    expect([response.status, await response.json()]).toMatchObject([
      529,
      { error: { type: "overloaded_error" } },
    ])
    await expect(
      client().messages.create({ ...hello, messages: [...hello.messages], model: "none" }),
    ).rejects.toThrow(Anthropic.NotFoundError)
  })

  test("an address that is not there, and a method that is not, answer in the same form", async () => {
    const headers = { "x-api-key": server.key }
    const missing = await fetch(`${server.url}/v1/messages/none`, { headers })
    expect([missing.status, await missing.json()]).toMatchObject([404, { type: "error" }])
    const wrong = await fetch(`${server.url}/v1/messages`, { headers })
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"])
  })
})

describe("on local models", () => {
  test.each([
    [{ stop_sequences: [" five", " three"] }, "one two", "stop_sequence", " three"],
    [{ max_tokens: 2 }, "one two", "max_tokens", null],
    [{}, "one two three four", "end_turn", null],
  ])("%j ends the answer, and the message says how", async (body, text, stop_reason, stop_sequence) => {
    const asked = { model: "counting", temperature: 0, ...body }
    const message = Message.parse(await (await send(asked)).json())
    expect(message).toMatchObject({ content: [{ type: "text", text }], stop_reason, stop_sequence })
    const events = eventsOf(await (await send({ ...asked, stream: true })).text())
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason, stop_sequence } })
  })

  test("counted tokens are those that the message then uses", async () => {
    const body = {
      model: "umpire-chat",
      system: "Be brief.",
      messages: [{ role: "user" as const, content: "Weather in Paris, please?" }],
      tools: [weather],
    }
    const { input_tokens } = await client().messages.countTokens(body)
    const { usage } = await client().messages.create({ ...body, max_tokens: 4 })
    expect(input_tokens).toBe(usage.input_tokens + (usage.cache_read_input_tokens ?? 0))
    expect(input_tokens).toBeGreaterThan(20)
  })

  test("a call that is demanded keeps to its schema", async () => {
    const message = await client().messages.create({
      model: "umpire-chat",
      max_tokens: 60,
      messages: [{ role: "user", content: "Weather in Paris?" }],
      tools: [weather],
      tool_choice: { type: "tool", name: "get_weather" },
    })
    expect(message.stop_reason).toBe("tool_use")
    expect(message.content.at(-1)).toMatchObject({
      type: "tool_use",
      name: "get_weather",
      input: { city: expect.any(String) as string },
    })
  })

  test("one conversation has the same answer over chat, responses and messages", async () => {
    const model = "umpire-chat"
    const turns = [
      { role: "user", content: "Name a fruit." },
      { role: "assistant", content: "An apple." },
      { role: "user", content: "Now name a vegetable, and say why." },
    ]
    const system = "Answer in one sentence."
    const common = { model, temperature: 0, top_p: 1 }
    const chat = (await (
      await server.post("/v1/chat/completions", {
        ...common,
        messages: [{ role: "system", content: system }, ...turns],
        max_tokens: 24,
      })
    ).json()) as { choices: { message: { content: string } }[] }
    const response = (await (
      await server.post("/v1/responses", {
        ...common,
        instructions: system,
        input: turns,
        max_output_tokens: 24,
      })
    ).json()) as { output: { content: { text: string }[] }[] }
    const message = Message.parse(
      await (await send({ ...common, system, messages: turns, max_tokens: 24 })).json(),
    )
    const [block] = message.content
    const text = chat.choices[0]?.message.content
    expect(text?.length).toBeGreaterThan(0)
    expect(response.output[0]?.content[0]?.text).toBe(text)
    expect(block?.type === "text" && block.text).toBe(text)
  })
})

test("a key in x-api-key is a key: its requests are recorded under messages", async () => {
  next = { text: "Hi." }
  const response = await fetch(`${server.url}/v1/messages`, {
    method: "POST",
    headers: { ...version, "x-api-key": server.key, "content-type": "application/json" },
    body: JSON.stringify(hello),
  })
  expect(response.status).toBe(200)
  const sequence = response.headers.get("x-umpire-sequence") ?? ""
  const authorization = `Bearer ${server.key}`
  const organizations = await fetch(`${server.url}/v1/organizations`, { headers: { authorization } })
  const { data } = (await organizations.json()) as { data: { id: string }[] }
  const path = `/v1/organizations/${data[0]?.id}/analytics/sequences/${sequence}`
  const found = async (): Promise<unknown> =>
    await (await fetch(server.url + path, { headers: { authorization } })).json()
  await expect
    .poll(found, { interval: 200 })
    .toMatchObject({ data: { sequence: { call_source: "messages", result: "success" } } })
})

test("the client's tool runner goes on without the thread that it asks for first", async () => {
  const runs: string[] = []
  const tool = betaTool({
    name: "get_weather",
    description: "The weather in a city",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    run: async ({ city }) => {
      runs.push(city)
      return "sunny"
    },
  })
  const answers: UpstreamAnswer[] = [
    { calls: [{ name: "get_weather", arguments: '{"city":"Oslo"}' }] },
    { text: "It is sunny." },
  ]
  next = answers[0] ?? {}
  const runner = client().beta.messages.toolRunner({
    model: "far",
    max_tokens: 50,
    messages: [{ role: "user", content: "Weather in Oslo?" }],
    tools: [tool],
  })
  const seen: string[] = []
  for await (const message of runner) {
    seen.push(message.stop_reason ?? "")
    next = answers[1] ?? {}
  }
  expect([seen, runs]).toEqual([["tool_use", "end_turn"], ["Oslo"]])
  const refused = await send({ thread: { type: "create" } })
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { type: "invalid_request_error", details: { error_code: "thread_unsupported_request" } } },
  ])
})

test("a text has no citations: some clients take a null for a list", async () => {
  next = { text: "Hi." }
  const whole = (await (await send({})).json()) as { content: object[] }
  expect(whole.content).toEqual([{ type: "text", text: "Hi." }])
  expect(await (await send({ stream: true })).text()).not.toContain("citations")
})

test("the models have the fields of Anthropic's clients beside those of OpenAI's", async () => {
  const found = []
  for await (const model of client().models.list()) found.push(model)
  expect(found.find(({ id }) => id === "far")).toMatchObject({
    type: "model",
    display_name: "far",
    created_at: new Date(0).toISOString(),
    max_input_tokens: 32_768,
    object: "model",
    owned_by: "umpire",
  })
  expect(await client().models.retrieve("far")).toMatchObject({
    id: "far",
    type: "model",
    lifecycle: "active",
  })
})
