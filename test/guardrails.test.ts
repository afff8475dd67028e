/** Guardrails over the wire: chat, responses, messages and sockets, before and after the model, with a scripted model behind them. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { permissions } from "../src/contract/access.ts"
import { createClient } from "../src/contract/client.ts"
import { guardrailLimits, readyMadeSets } from "../src/contract/guardrails/guardrails.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { readRecords } from "./gateways.ts"
import { chunkingWindows, expectNothingPasses, startChunkedUpstream } from "./guardrail-chunkings.ts"
import { makeOrganization, operatorOf } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

const question = "What is the weather?"
/** How the model's answer comes. */
let pieceCharacters = 5
const answer = "The weather in Oslo is fine, and the ferry leaves at noon. ".repeat(4)
/** What the model says. */
let said = answer

let server: TestServer
let worker: Server
let chunked: Awaited<ReturnType<typeof startChunkedUpstream>>
let folder: string
let client: ReturnType<typeof createClient>
let org: string
/** Bodies that the model was sent. */
const received: { messages: { role: string; content: string }[] }[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-guardrails-"))
  worker = createServer((request, response) => void write(request, response))
  await new Promise<void>((resolve) => worker.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(worker.address() as AddressInfo).port}/v1`
  chunked = await startChunkedUpstream()
  const context_tokens_max = 8192
  const seers = [{ url: chunked.url, dialect: "systemone" }]
  const models = [
    ...["writer", "other"].map((sku) => ({ sku, context_tokens_max, workers: [{ url, dialect: "openai" }] })),
    { sku: "chunked", context_tokens_max, workers: [{ url: `${chunked.url}/v1`, dialect: "openai" }] },
    { sku: "seer", context_tokens_max, workers: seers },
    // More than anyone has for one check.
    { sku: "dear", context_tokens_max, workers: seers, price_m_input_tokens_usd: "100000000" },
  ]
  const config = join(folder, "umpire.yaml")
  writeFileSync(config, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  org = (await client.listOrganizations())[0]?.id ?? ""
  // A bias decides alone, so that each answer is known.
  for (const name of ["seer", "dear"])
    await client.createQuestionSet({
      params: { org_id: org },
      body: {
        name,
        model: name,
        questions: [{ type: "predicate", name: "found", instructions: "Is it there?" }],
      },
    })
  for (const [name, bias] of [
    ["always", 100],
    ["never", -100],
  ] as const) {
    const calibration = { temperature: 100, bias }
    const questions = [
      { type: "predicate" as const, name: "found", instructions: "Is it raining?", calibration },
    ]
    await client.createQuestionSet({
      params: { org_id: org },
      body: { name, model: "umpire-decide", questions },
    })
  }
})
afterEach(async () => {
  const { data } = await client.listGuardrails({ params: { org_id: org } })
  for (const { id } of data) await client.deleteGuardrail({ params: { org_id: org, guardrail_id: id } })
})
afterAll(async () => {
  await server.stop()
  await chunked.close()
  worker.closeAllConnections()
  await new Promise((resolve) => worker.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

const chunk = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`

/** The model: it says the same every time. */
async function write(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ""
  for await (const chunk of request) body += String(chunk)
  if (request.method !== "POST") return void response.end('{"object":"list","data":[]}')
  const asked = JSON.parse(body) as (typeof received)[number]
  received.push(asked)
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (let at = 0; at < said.length; at += pieceCharacters)
    response.write(chunk({ content: said.slice(at, at + pieceCharacters) }))
  response.write(chunk({}, "stop"))
  const usage = { prompt_tokens: 5, completion_tokens: 40, total_tokens: 45 }
  response.write(
    `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage })}\n\n`,
  )
  response.end("data: [DONE]\n\n")
}

type Body = Parameters<typeof client.createGuardrail>[0]["body"]
const guard = async (body: Omit<Body, "name"> & { name?: string }) =>
  await client.createGuardrail({
    params: { org_id: org },
    body: { name: "g", window_characters: 64, hold_back_characters: 20, ...body },
  })

/** Its set is deleted after it was saved. */
async function guardWithoutSet(body: Omit<Body, "name" | "question_set">): Promise<void> {
  const questions = [{ type: "predicate" as const, name: "found", instructions: "Is it there?" }]
  const params = { org_id: org }
  const set = await client.createQuestionSet({
    params,
    body: { name: "missing", model: "umpire-decide", questions },
  })
  await guard({ ...body, question_set: "missing" })
  await client.deleteQuestionSet({ params: { ...params, set_id: set.id } })
}

const messages = [{ role: "user", content: question }]
const chat = async (body: object = {}): Promise<Response> =>
  await server.post("/v1/chat/completions", { model: "writer", messages, ...body })
const respond = async (body: object = {}): Promise<Response> =>
  await server.post("/v1/responses", { model: "writer", input: question, ...body })
const compact = async (): Promise<Response> =>
  await server.post("/v1/responses/compact", { model: "writer", input: question })

const message = async (body: object = {}): Promise<Response> =>
  await server.post(
    "/v1/messages",
    { model: "writer", max_tokens: 100, messages, ...body },
    { "anthropic-version": "2023-06-01" },
  )

async function recordOf(response: Response): Promise<SequenceRecord | undefined> {
  const id = response.headers.get("x-umpire-sequence")
  return (await readRecords(server.dataDirectory)).find(({ seq_id }) => seq_id === id)
}

async function overSocket(): Promise<string> {
  const headers = { authorization: `Bearer ${server.key}` }
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, { headers })
  let text = ""
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject)
    socket.on("open", () =>
      socket.send(JSON.stringify({ type: "response.create", model: "writer", input: question })),
    )
    socket.on("message", (message: Buffer) => {
      text += message.toString()
      if (/"type":"(?:response\.(?:completed|incomplete|failed)|error)"/.test(text)) resolve()
    })
  })
  socket.close()
  return text
}

describe("what the model is to read", () => {
  test("is blocked, over every wire, before the model sees it; the decision and its cost are recorded", async () => {
    await guard({ question_set: "always", stage: "input" })
    const asked = received.length
    for (const response of [
      await chat(),
      await chat({ stream: true }),
      await respond(),
      await respond({ stream: true }),
    ]) {
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { error: { code: "guardrail_blocked" } },
      ])
      expect(response.headers.get("x-umpire-guardrails")).toMatch(/^g=block;stage=input, ms=\d+$/)
    }
    expect(await overSocket()).toContain("guardrail_blocked")
    for (const response of [await message(), await message({ stream: true })])
      expect([response.status, await response.json()]).toMatchObject([
        400,
        {
          type: "error",
          error: { type: "invalid_request_error", message: expect.stringContaining("guardrail g") },
        },
      ])
    expect(received.length).toBe(asked)
    const response = await chat({ messages: [{ role: "user", content: "Something new." }] })
    const record = await recordOf(response)
    expect(record).toMatchObject({ result: "error", error_code: "guardrail_blocked", cost_ticks: "0" })
    expect(record?.tags).toMatchObject({
      "guardrail.g": "block;stage=input",
      guardrail_ms: expect.any(String),
    })
    const checks = (await readRecords(server.dataDirectory)).filter(
      ({ call_source, request_id }) => call_source === "guardrail" && request_id === record?.request_id,
    )
    expect(checks).toHaveLength(1)
    expect(checks[0]?.input_tokens).toBeGreaterThan(0)
  })

  test("is blocked wherever it stands: in an earlier message, a tool's answer, or before the assistant's", async () => {
    await guard({ question_set: "always", stage: "input" })
    const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } }
    for (const given of [
      [...messages, { role: "assistant", content: "Sure" }],
      [
        { role: "system", content: "Be brief." },
        { role: "assistant", content: "", tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: "tool output" },
      ],
    ])
      expect((await chat({ messages: given })).status).toBe(400)
    const own = [{ role: "system", content: "Only the developer's words." }]
    expect((await chat({ messages: own })).status).toBe(200)
  })

  test("is redacted, and the model reads the rest", async () => {
    await guard({ question_set: "always", stage: "input", action: "redact" })
    expect((await chat()).status).toBe(200)
    expect(received.at(-1)?.messages).toEqual([{ role: "user", content: "[redacted]" }])
  })

  test("is redacted to the letter where it is recognised, and no model is asked about it", async () => {
    const rule: Omit<Body, "name"> = { question_set: "never", stage: "input", recognizers: ["email", "iban"] }
    const redacting = await guard({ ...rule, action: "redact" })
    const content = "Write to ann@example.org. Pay DE44 5001 0517 5407 3249 31, not 4711."
    expect((await chat({ messages: [{ role: "user", content }] })).status).toBe(200)
    const redacted = "Write to [redacted]. Pay [redacted], not 4711."
    expect(received.at(-1)?.messages).toEqual([{ role: "user", content: redacted }])
    await client.deleteGuardrail({ params: { org_id: org, guardrail_id: redacting.id } })
    await guardWithoutSet(rule)
    const blocked = await chat({ messages: [{ role: "user", content: "I am ann@example.org" }] })
    expect(blocked.status).toBe(400)
    expect(await recordOf(blocked)).toMatchObject({ tags: { "guardrail.g": "block;stage=input" } })
  })

  test("is sent to another model", async () => {
    await guard({ question_set: "always", stage: "input", action: "route", route_model: "other" })
    const response = await chat()
    expect(await response.json()).toMatchObject({ model: "other" })
    expect(await recordOf(response)).toMatchObject({
      model: "other",
      tags: { "guardrail.g": "route;stage=input" },
    })
  })

  test("is flagged in the record and the headers, and passes", async () => {
    await guard({ question_set: "always", stage: "input", action: "flag" })
    const response = await chat()
    expect(response.status).toBe(200)
    expect(response.headers.get("x-umpire-guardrails")).toMatch(/^g=flag;stage=input, ms=\d+$/)
    expect((await recordOf(response))?.tags).toMatchObject({ "guardrail.g": "flag;stage=input" })
  })

  test("passes where nothing is found", async () => {
    await guard({ question_set: "never" })
    const response = await chat()
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: answer }, finish_reason: "stop" }],
    })
    expect((await recordOf(response))?.tags).not.toHaveProperty("guardrail.g")
  })
})

describe("what the model writes", () => {
  test.each(["window", "end"] as const)(
    "is blocked, and no word of it leaves (release: %s)",
    async (release) => {
      await guard({ question_set: "always", stage: "output", release })
      const whole = (await (await chat()).json()) as object
      expect(whole).toMatchObject({
        choices: [{ message: { content: "" }, finish_reason: "content_filter" }],
      })
      const sent = [
        JSON.stringify(whole),
        await (await chat({ stream: true })).text(),
        await (await respond()).text(),
        await (await respond({ stream: true })).text(),
        await overSocket(),
        await (await message()).text(),
        await (await message({ stream: true })).text(),
      ]
      for (const text of sent) {
        expect(text).not.toMatch(/weather in|Oslo|ferry/)
        expect(text).toMatch(/content_filter|"stop_reason":"refusal"/)
      }
    },
  )

  test("is blocked in 50 adversarial chunkings over every wire, escaped or not", async () => {
    await guard({ question_set: "seer", stage: "output", ...chunkingWindows })
    await expectNothingPasses(server, chunked.cases, { writer: "chunked", count: 50, seed: 20_261_116 })
  })

  test.each([1, 2, 7, 44, 45, 63, 64, 65, 1000])(
    "is blocked in pieces of %d characters",
    async (characters) => {
      pieceCharacters = characters
      await guard({ question_set: "always", stage: "output" })
      const text = await (await chat({ stream: true })).text()
      expect(text).not.toMatch(/"content":"[^"]/)
      expect(text).toContain("content_filter")
    },
  )

  test("is charged although it is blocked, and the record says why it stopped", async () => {
    await guard({ question_set: "always", stage: "output" })
    const record = await recordOf(await chat())
    expect(record).toMatchObject({
      stop_reason: "content_filter",
      tags: { "guardrail.g": "block;stage=output" },
    })
    // A worker that is stopped has not yet said what it read: what it wrote is counted by its pieces.
    expect(record?.output_tokens).toBeGreaterThan(0)
  })

  test("is redacted in a stream", async () => {
    await guard({ question_set: "always", stage: "output", action: "redact" })
    const text = await (await chat({ stream: true })).text()
    expect(text).toContain("[redacted]")
    expect(text).not.toMatch(/Oslo|ferry/)
  })

  test("is redacted to the letter in a stream where it is recognised", async () => {
    said = "Of course. Ask ann@example.org for the key of the house. ".repeat(3)
    try {
      await guard({ question_set: "never", stage: "output", action: "redact", recognizers: ["email"] })
      const text = await (await chat({ stream: true })).text()
      const passed = Array.from(text.matchAll(/"content":"([^"]*)"/g), ([, piece]) => piece).join("")
      expect(passed).toBe(said.replaceAll("ann@example.org", "[redacted]"))
    } finally {
      said = answer
    }
  })

  test("passes unchanged in a stream where nothing is found", async () => {
    await guard({ question_set: "never", stage: "output" })
    const text = await (await chat({ stream: true })).text()
    const said = Array.from(text.matchAll(/"content":"([^"]*)"/g), ([, piece]) => piece).join("")
    expect(said).toBe(answer)
  })
})

describe("a summary of a conversation", () => {
  test("that is blocked does not take its place, and is charged", async () => {
    expect((await compact()).status).toBe(200)
    await guard({ question_set: "always", stage: "output" })
    const response = await compact()
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("guardrail_blocked"),
    ])
    const record = await recordOf(response)
    expect(record).toMatchObject({ call_source: "compact", error_code: "guardrail_blocked" })
    expect(record?.output_tokens).toBeGreaterThan(0)
  })

  test("that is empty does not take its place", async () => {
    said = " "
    const response = await compact().finally(() => (said = answer))
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining("inference_failed"),
    ])
  })
})

test("texts over the limit of one request count as found where a whole was, and are checked by the next request", async () => {
  const sentences = Array.from({ length: guardrailLimits.windowsMax + 1 }, (_, at) => `Rain ${at}! `)
  const window_characters = guardrailLimits.windowCharactersMax
  const rule = { question_set: "always", stage: "input" as const, window_characters }
  const open = await guard({ ...rule, action: "redact", on_error: "open" })
  const whole = [{ role: "user", content: sentences.join("") }]
  expect((await chat({ messages: whole })).status).toBe(200)
  expect(received.at(-1)?.messages).toEqual([{ role: "user", content: "[redacted]" }])
  await client.deleteGuardrail({ params: { org_id: org, guardrail_id: open.id } })
  await guard({ ...rule, action: "flag" })
  const parts = sentences.map((content) => ({ role: "user", content }))
  expect((await chat({ messages: parts })).status).toBe(200)
})

/** The models that were asked about a chat; none where the verdict was known. */
async function checkedBy(): Promise<string[]> {
  const record = await recordOf(await chat())
  const checks = (await readRecords(server.dataDirectory)).filter(
    ({ call_source, request_id }) => call_source === "guardrail" && request_id === record?.request_id,
  )
  return checks.map(({ model }) => model)
}

test("what was found by a virtual model is asked again when the name comes to another model", async () => {
  const params = { org_id: org }
  const judge = await client.createVirtualModel({ params, body: { name: "judge", alias: "seer" } })
  const questions = [{ type: "predicate" as const, name: "found", instructions: "Is it there?" }]
  await client.createQuestionSet({ params, body: { name: "judged", model: "judge", questions } })
  await guard({ question_set: "judged", stage: "input", action: "flag" })
  expect([await checkedBy(), await checkedBy()]).toEqual([["seer"], []])
  const path = { ...params, model_id: judge.id }
  await client.updateVirtualModel({ params: path, body: { alias: "umpire-decide" } })
  expect(await checkedBy()).toEqual(["umpire-decide"])
})

test("is refused when its set or key is not the organization's, and can be changed after its set is gone", async () => {
  const params = { org_id: org }
  const refused = { status: 422, code: "invalid_body" }
  await expect(guard({ question_set: "nowhere" })).rejects.toMatchObject(refused)
  const others = await makeOrganization(server, { name: "Others", owner: "others@example.com" })
  const operator = await operatorOf(server)
  const [foreign] = (await operator.listApiKeys({ params: { org_id: others.id } })).data
  for (const api_key_id of ["key_of_none", foreign?.id ?? ""])
    await expect(guard({ question_set: "never", api_key_id })).rejects.toMatchObject(refused)
  const [own] = (await operator.listApiKeys({ params })).data
  await guard({ question_set: "never", api_key_id: own?.id ?? "" })
  await guardWithoutSet({ stage: "input" })
  const [saved] = (await client.listGuardrails({ params })).data
  const at = { ...params, guardrail_id: saved?.id ?? "" }
  await client.updateGuardrail({ params: at, body: { enabled: false } })
  await expect(
    client.updateGuardrail({ params: at, body: { question_set: "nowhere" } }),
  ).rejects.toMatchObject(refused)
})

describe("a check that fails", () => {
  test.each(["input", "output"] as const)("fails the request where it is closed (%s)", async (stage) => {
    await guardWithoutSet({ stage, on_error: "closed" })
    const response = await chat()
    const body = await response.text()
    expect([response.status, body]).toEqual([500, expect.stringContaining("guardrail_failed")])
    expect(body).not.toContain("ferry")
  })

  test("charges what a model of a fallback wrote until then, as without a fallback", async () => {
    const body = { name: "either", fallback: ["writer", "other"] }
    await client.createVirtualModel({ params: { org_id: org }, body })
    await guardWithoutSet({ stage: "output", on_error: "closed" })
    for (const model of ["writer", "either"]) {
      const record = await recordOf(await chat({ model }))
      expect(record).toMatchObject({ model: "writer", error_code: "guardrail_failed" })
      expect(record?.output_tokens, model).toBeGreaterThan(0)
    }
  })

  test.each(["input", "output"] as const)(
    "lets the request pass where it is open (%s), and says so",
    async (stage) => {
      await guardWithoutSet({ stage, on_error: "open" })
      const response = await chat()
      expect(response.status).toBe(200)
      expect((await recordOf(response))?.tags).toMatchObject({ "guardrail.g": `error_open;stage=${stage}` })
    },
  )
})

describe("a check that cannot be paid for", () => {
  test.each(["input", "output"] as const)("is 402 where it is closed (%s)", async (stage) => {
    await guard({ question_set: "dear", stage, on_error: "closed" })
    const response = await chat()
    expect([response.status, await response.json()]).toMatchObject([
      402,
      { error: { code: "insufficient_credits" } },
    ])
  })

  test("lets the request pass where it is open", async () => {
    await guard({ question_set: "dear", on_error: "open" })
    const response = await chat()
    expect(response.status).toBe(200)
    expect((await recordOf(response))?.tags).toMatchObject({ "guardrail.g": "error_open;stage=output" })
  })
})

describe("whom it is for", () => {
  test("only the key, and only the model, that it names; not while it is disabled", async () => {
    await guard({ question_set: "always", stage: "input", model: "other" })
    expect((await chat()).status).toBe(200)
    expect((await chat({ model: "other" })).status).toBe(400)
    await guard({ name: "alias", question_set: "always", stage: "input", model: "umpire-nano" })
    for (const model of ["umpire-nano", "umpire-chat"]) expect((await chat({ model })).status).toBe(400)
    const { id, secret } = await (
      await operatorOf(server)
    ).createApiKey({
      params: { org_id: org },
      body: { name: "guarded", permissions: ["inference"] },
    })
    const own = await guard({ name: "key", question_set: "always", stage: "input", api_key_id: id })
    expect((await chat()).status).toBe(200)
    const authorization = `Bearer ${secret}`
    const withKey = async (): Promise<number> =>
      (await server.post("/v1/chat/completions", { model: "writer", messages }, { authorization })).status
    expect(await withKey()).toBe(400)
    const path = { org_id: org, guardrail_id: own.id }
    await client.updateGuardrail({ params: path, body: { enabled: false } })
    expect(await withKey()).toBe(200)
  })

  test.each(["open", "closed"] as const)(
    "also a key that may not use the model of the question set (on_error: %s)",
    async (on_error) => {
      await guard({ question_set: "always", stage: "input", on_error })
      const { secret } = await client.createApiKey({
        params: { org_id: org },
        body: { name: `limited ${on_error}`, permissions: ["inference"], allowed_models: ["writer"] },
      })
      const authorization = `Bearer ${secret}`
      const answered = await server.post(
        "/v1/chat/completions",
        { model: "writer", messages: [{ role: "user", content: `Unseen, ${on_error}.` }] },
        { authorization },
      )
      expect([answered.status, await answered.text()]).toEqual([
        400,
        expect.stringContaining("guardrail_blocked"),
      ])
    },
  )

  test("an organization's guardrails are neither seen nor felt by another", async () => {
    const mine = await guard({ question_set: "always" })
    const given = { name: "Other", owner: "other@example.com" }
    const { id: org_id, secret } = await makeOrganization(server, given, permissions)
    const other = createClient(server.url, { authorization: `Bearer ${secret}` })
    expect((await other.listGuardrails({ params: { org_id } })).data).toEqual([])
    const path = { org_id, guardrail_id: mine.id }
    await expect(other.getGuardrail({ params: path })).rejects.toMatchObject({ status: 404 })
    await expect(other.updateGuardrail({ params: path, body: { enabled: false } })).rejects.toMatchObject({
      status: 404,
    })
    await expect(other.deleteGuardrail({ params: path })).rejects.toMatchObject({ status: 404 })
    await expect(other.listGuardrails({ params: { org_id: org } })).rejects.toMatchObject({ status: 404 })
    const authorization = `Bearer ${secret}`
    const response = await server.post(
      "/v1/chat/completions",
      { model: "writer", messages },
      { authorization },
    )
    expect(await response.text()).not.toContain("guardrail")
  })
})

test.each([
  [{ action: "route" as const, stage: "input" as const }, "route_model"],
  [{ route_model: "other" }, "route_model"],
  [{ action: "route" as const, stage: "both" as const, route_model: "other" }, "stage"],
  [{ window_characters: 64, hold_back_characters: 64 }, "hold_back_characters"],
])("settings that contradict each other are refused: %j", async (body, path) => {
  await expect(guard({ question_set: "always", ...body })).rejects.toMatchObject({
    status: 422,
    body: { error: { details: [{ path }] } },
  })
})

test("every ready-made set can be created as it is, and found by its guardrail", async () => {
  const listed = await client.listReadyMadeSets({ params: { org_id: org } })
  expect(listed.map(({ name }) => name)).toEqual(readyMadeSets.map(({ name }) => name))
  for (const { measured, recognizers: _, ...body } of listed) {
    expect(measured).not.toBe("")
    await client.createQuestionSet({ params: { org_id: org }, body })
  }
  await guard({ name: "toxicity", question_set: "toxicity", stage: "input" })
  const insult = [{ role: "user", content: "You are a worthless idiot and everyone hates you." }]
  expect((await chat({ messages: insult })).status).toBe(400)
  expect((await chat()).status).toBe(200)
})

test("umpire guardrails adds a ready-made set with its guardrail, lists, disables and removes it", async () => {
  const command = join(import.meta.dirname, "..", "bin", "umpire.js")
  const env = { ...process.env, UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const umpire = async (...words: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [command, "guardrails", ...words], { env })).stdout
  expect(await umpire("sets")).toContain("prompt-injection")
  const added = await umpire("add", "refusal", "--stage", "output", "--action", "flag")
  const id = /gr_[0-9a-z]{26}/.exec(added)?.[0] ?? ""
  expect(added).toBe(`refusal is active: ${id}\n`)
  expect(await umpire("disable", id)).toBe("refusal is disabled\n")
  expect(await umpire("list")).toMatch(
    new RegExp(`${id} +refusal +refusal +output +flag +everything +disabled`),
  )
  expect(await umpire("remove", id)).toBe(`${id} is removed\n`)
  await expect(umpire("add")).rejects.toMatchObject({ code: 2 })
  await expect(umpire("add", "x", "--stage", "nowhere")).rejects.toMatchObject({ code: 2 })
})
