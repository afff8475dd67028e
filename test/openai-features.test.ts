/** What OpenAI's own client asks of chat and Responses beside answers: work in the background, summaries of reasoning, custom tools. */
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type AgentsScene, openAgentsScene } from "./agents-scene.ts"
import { readRecords } from "./gateways.ts"
import { makeOrganization } from "./operator.ts"
import type { UpstreamAnswer } from "./upstream.ts"

let next: UpstreamAnswer = {}
let scene: AgentsScene
beforeAll(async () => {
  scene = await openAgentsScene(() => next, [], [{ sku: "far" }, { sku: "frail" }])
})
afterAll(async () => {
  await scene.close()
})

const client = (): OpenAI =>
  new OpenAI({ apiKey: scene.server.key, baseURL: `${scene.server.url}/v1`, maxRetries: 0 })

const choice = (name: string) => ({ tool_choice: { type: "custom" as const, custom: { name } } })
const texts = () => scene.upstream.requests.at(-1)?.messages.map(({ content }) => content)

const ended = async (id: string): Promise<OpenAI.Responses.Response> => {
  const read = async (): Promise<OpenAI.Responses.Response> => await client().responses.retrieve(id)
  await expect.poll(async () => (await read()).status).not.toBe("in_progress")
  return await read()
}

describe("background", () => {
  test("is answered at once, goes on without the client, and is charged and recorded like any other", async () => {
    next = { text: "Good day." }
    const begun = await client().responses.create({ model: "far", input: "Hello", background: true })
    expect(begun).toMatchObject({ background: true, status: "in_progress", output: [] })
    expect(await ended(begun.id)).toMatchObject({ status: "completed", output_text: "Good day." })
    const { data } = await client().responses.inputItems.list(begun.id)
    expect(data).toMatchObject([{ role: "user" }])
    const again = await client().responses.create({
      model: "far",
      input: "Again",
      previous_response_id: begun.id,
    })
    expect(again.output_text).toBe("Good day.")
    const records = await readRecords(scene.server.dataDirectory)
    expect(
      records.filter(({ call_source, result }) => call_source === "responses" && result === "success"),
    ).toHaveLength(2)
  })

  test("a stream of it is that of any response, and can be read again from any event", async () => {
    next = { text: "Good day from far away." }
    const stream = await client().responses.create({
      model: "far",
      input: "Hello",
      background: true,
      stream: true,
    })
    const types: string[] = []
    let id = ""
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === "response.created") ({ id } = event.response)
    }
    expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"])
    const rest: string[] = []
    for await (const event of await client().responses.retrieve(id, { stream: true, starting_after: 2 }))
      rest.push(event.type)
    expect(rest).toEqual(types.slice(3))
  })

  test("a client that leaves its stream does not end it", async () => {
    next = { text: "Good day from far away." }
    const leaving = new AbortController()
    const stream = await client().responses.create(
      { model: "far", input: "Hello", background: true, stream: true },
      { signal: leaving.signal },
    )
    let id = ""
    for await (const event of stream)
      if (event.type === "response.created") {
        ;({ id } = event.response)
        leaving.abort()
        break
      }
    expect(await ended(id)).toMatchObject({ status: "completed", output_text: "Good day from far away." })
  })

  test("a failure is read like an answer", async () => {
    next = { text: "Hello there, this breaks off.", breaksAfter: 0 }
    const { id } = await client().responses.create({ model: "frail", input: "Hello", background: true })
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "server_error" } })
  })

  test("what would not be stored is refused, and so is a wrong request", async () => {
    const wrong = { model: "far", input: "Hello", background: true, store: false }
    await expect(client().responses.create(wrong)).rejects.toMatchObject({ status: 400, param: "background" })
    await expect(
      client().responses.create({ model: "none", input: "Hello", background: true }),
    ).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })
})

test("reasoning is its own summary for those who ask for one, streamed, whole and stored", async () => {
  next = { reasoning: "Seven times six.", text: "42." }
  const body = { model: "far", input: "What is 7 x 6?", reasoning: { summary: "auto" as const } }
  const whole = await client().responses.create(body)
  expect(whole.reasoning?.summary).toBe("auto")
  expect(whole.output[0]).toMatchObject({
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Seven times six." }],
    content: [{ type: "reasoning_text", text: "Seven times six." }],
  })
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client().responses.create({ ...body, stream: true })) events.push(event)
  const deltas = events.flatMap((event) =>
    event.type === "response.reasoning_summary_text.delta" ? [event.delta] : [],
  )
  expect(deltas.join("")).toBe("Seven times six.")
  const last = events.at(-1)
  const id = last?.type === "response.completed" ? last.response.id : ""
  const replayed: unknown[] = []
  for await (const event of await client().responses.retrieve(id, { stream: true })) replayed.push(event)
  expect(replayed.slice(2)).toEqual(events.slice(2))
  const plain = await client().responses.create({ model: "far", input: "What is 7 x 6?" })
  expect(plain.output[0]).toMatchObject({ type: "reasoning", summary: [] })
  next = { text: "Yes." }
  const [said] = whole.output
  if (said?.type !== "reasoning") throw new Error("it did not think")
  const { content: _, ...summarised } = said
  await client().responses.create({
    model: "far",
    input: [summarised, { role: "assistant", content: "42." }, { role: "user", content: "Sure?" }],
  })
  expect(scene.upstream.requests.at(-1)?.messages[0]).toMatchObject({ reasoning_content: "Seven times six." })
})

describe("custom tools of chat", () => {
  const tools: OpenAI.ChatCompletionTool[] = [
    { type: "custom", custom: { name: "shell", description: "Runs a command" } },
    { type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } },
  ]
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "List the files." }]
  const called: UpstreamAnswer = {
    calls: [
      { name: "shell", arguments: JSON.stringify({ input: "ls -l\n" }) },
      { name: "look", arguments: "{}" },
    ],
  }
  const expected = [
    { type: "custom", custom: { name: "shell", input: "ls -l\n" } },
    { type: "function", function: { name: "look", arguments: "{}" } },
  ]

  test("are called with their text, whole and streamed, and their calls are understood again", async () => {
    next = called
    const whole = await client().chat.completions.create({ model: "far", messages, tools })
    const { message } = whole.choices[0] ?? {}
    expect(message?.tool_calls).toMatchObject(expected)
    const input: Record<number, string> = {}
    const types: unknown[] = []
    const stream = await client().chat.completions.create({ model: "far", messages, tools, stream: true })
    for await (const chunk of stream)
      for (const call of chunk.choices[0]?.delta.tool_calls ?? []) {
        if (call.type !== undefined) types.push(call.type)
        // The client's types have functions only.
        const { custom } = call as { custom?: { input: string } }
        input[call.index] = (input[call.index] ?? "") + (custom?.input ?? call.function?.arguments ?? "")
      }
    expect([types, input]).toEqual([["custom", "function"], { 0: "ls -l\n", 1: "{}" }])
    const results = (message?.tool_calls ?? []).map(({ id }) => ({
      role: "tool" as const,
      tool_call_id: id,
      content: "done",
    }))
    next = { text: "There are none." }
    if (!message) throw new Error("there is no message")
    await client().chat.completions.create({
      model: "far",
      messages: [...messages, message, ...results],
      tools,
    })
    expect(scene.upstream.requests.at(-1)?.messages[1]?.tool_calls).toMatchObject([
      { function: { name: "shell", arguments: JSON.stringify({ input: "ls -l\n" }) } },
      { function: { name: "look" } },
    ])
  })

  test("one can be demanded by its name; one that is not offered cannot", async () => {
    next = called
    const body = { model: "far", messages, tools }
    await client().chat.completions.create({ ...body, ...choice("shell") })
    expect(scene.upstream.requests.at(-1)?.["tool_choice"]).toMatchObject({ function: { name: "shell" } })
    await expect(client().chat.completions.create({ ...body, ...choice("other") })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    )
  })
})

describe("legacy completions", () => {
  const prompt = "Say hello."

  test("answer a prompt, whole and streamed, one or several times", async () => {
    next = { text: "Good day." }
    const whole = await client().completions.create({ model: "far", prompt: [prompt], max_tokens: 9, n: 2 })
    expect(whole).toMatchObject({
      object: "text_completion",
      choices: [
        { index: 0, text: "Good day.", logprobs: null, finish_reason: "stop" },
        { index: 1, text: "Good day." },
      ],
      usage: { prompt_tokens: expect.any(Number) as number },
    })
    expect(scene.upstream.requests.at(-1)).toMatchObject({
      messages: [{ role: "user", content: prompt }],
      max_completion_tokens: 9,
    })
    let text = ""
    const reasons: unknown[] = []
    const options = { stream_options: { include_usage: true } }
    for await (const chunk of await client().completions.create({
      model: "far",
      prompt,
      stream: true,
      ...options,
    })) {
      text += chunk.choices[0]?.text ?? ""
      reasons.push(...chunk.choices.map(({ finish_reason }) => finish_reason as unknown))
    }
    expect([text, reasons.at(-1)]).toEqual(["Good day.", "stop"])
  })

  test("say how likely each token was, by its place in the text", async () => {
    const body = { model: "umpire-chat", prompt, max_tokens: 4, temperature: 0, logprobs: 2 }
    const { choices } = await client().completions.create(body)
    const { text = "", logprobs } = choices[0] ?? {}
    const { tokens = [], text_offset = [], top_logprobs = [] } = logprobs ?? {}
    expect(tokens.join("")).toBe(text)
    expect(text_offset).toEqual(tokens.map((_, at) => tokens.slice(0, at).join("").length))
    expect(Object.keys(top_logprobs?.[0] ?? {})).toHaveLength(2)
  })

  test.each([
    ["two prompts", { prompt: [prompt, prompt] }, "invalid_request"],
    ["no prompt", { prompt: "" }, "invalid_request"],
    ["an echo", { prompt, echo: true }, "unsupported_parameter"],
  ])("%s is refused", async (_, body, code) => {
    const response = await scene.server.post("/v1/completions", { model: "far", ...body })
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code } }])
  })
})

describe("conversations", () => {
  test("are continued by responses, which add what was asked and answered", async () => {
    const { conversations, responses } = client()
    const items = [{ type: "message" as const, role: "user" as const, content: "I like blue." }]
    const made = await conversations.create({ items, metadata: { topic: "colours" } })
    expect(made).toMatchObject({ object: "conversation", metadata: { topic: "colours" } })
    next = { text: "Noted." }
    const first = await responses.create({ model: "far", input: "Remember it.", conversation: made.id })
    expect(first).toMatchObject({ conversation: { id: made.id }, output_text: "Noted." })
    next = { text: "Blue." }
    await responses.create({ model: "far", input: "Which colour?", conversation: { id: made.id } })
    expect(texts()).toEqual(["I like blue.", "Remember it.", "Noted.", "Which colour?"])
    const listed: unknown[] = []
    for await (const item of conversations.items.list(made.id, { order: "asc", limit: 2 })) listed.push(item)
    expect(listed).toMatchObject([
      { role: "user", content: [{ text: "I like blue." }] },
      { role: "user" },
      { role: "assistant", content: [{ type: "output_text", text: "Noted." }] },
      { role: "user" },
      { role: "assistant" },
    ])
  })

  test("their items and metadata are added, read, changed and deleted, and they are gone for others", async () => {
    const { conversations } = client()
    const { id } = await conversations.create({})
    const added = await conversations.items.create(id, {
      items: [
        { role: "user", content: "one" },
        { role: "user", content: "two" },
      ],
    })
    expect(added).toMatchObject({
      object: "list",
      data: [{ role: "user" }, { role: "user" }],
      has_more: false,
    })
    const item = added.first_id
    expect(await conversations.items.retrieve(item, { conversation_id: id })).toMatchObject({ id: item })
    await conversations.items.delete(item, { conversation_id: id })
    await expect(conversations.items.retrieve(item, { conversation_id: id })).rejects.toBeInstanceOf(
      OpenAI.NotFoundError,
    )
    expect(await conversations.update(id, { metadata: { a: "b" } })).toMatchObject({
      id,
      metadata: { a: "b" },
    })
    const { secret } = await makeOrganization(scene.server, { name: "Other", owner: "other@example.com" })
    const other = new OpenAI({ apiKey: secret, baseURL: `${scene.server.url}/v1`, maxRetries: 0 })
    await expect(other.conversations.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expect(other.conversations.delete(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    expect(await conversations.delete(id)).toEqual({ id, object: "conversation.deleted", deleted: true })
    await expect(conversations.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })

  test("one that is not there, and two pasts at once, are refused", async () => {
    const ask = { model: "far", input: "x" }
    await expect(client().responses.create({ ...ask, conversation: "conv_1" })).rejects.toMatchObject({
      status: 404,
      param: "conversation",
    })
    const { id } = await client().conversations.create({})
    const both = { ...ask, conversation: id, previous_response_id: "resp_1" }
    await expect(client().responses.create(both)).rejects.toMatchObject({
      status: 400,
      param: "conversation",
    })
  })
})

describe("stored chat completions", () => {
  const body = { model: "far", messages: [{ role: "user" as const, content: "Hello" }] }

  test("are kept when their requests say so, listed, changed and deleted", async () => {
    const { completions } = client().chat
    next = { text: "Good day." }
    const plain = await completions.create(body)
    const kept = await completions.create({ ...body, store: true, metadata: { topic: "hello" } })
    let id = ""
    for await (const chunk of await completions.create({ ...body, store: true, stream: true }))
      ({ id } = chunk)
    await expect(completions.retrieve(plain.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    expect(await completions.retrieve(kept.id)).toMatchObject({ ...kept, metadata: { topic: "hello" } })
    const listed: string[] = []
    for await (const one of completions.list({ limit: 1, order: "desc" })) listed.push(one.id)
    expect(listed).toEqual([id, kept.id])
    expect(await completions.retrieve(id)).toMatchObject({
      choices: [{ message: { content: "Good day." }, finish_reason: "stop" }],
    })
    expect((await completions.messages.list(kept.id)).data).toMatchObject([
      { role: "user", content: "Hello", id: `${kept.id}-0` },
    ])
    expect(await completions.update(kept.id, { metadata: { topic: "bye" } })).toMatchObject({
      metadata: { topic: "bye" },
    })
    expect(await completions.delete(kept.id)).toMatchObject({ id: kept.id, deleted: true })
    await expect(completions.retrieve(kept.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    // One kind is not the other.
    await expect(client().responses.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    const response = await client().responses.create({ model: "far", input: "Hello" })
    await expect(completions.retrieve(response.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  })
})
