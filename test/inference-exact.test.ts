/** What OpenAI's two public descriptions of the Responses API and its server say beyond the happy path. */
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { ResponseEvent, ResponseObject } from "../src/contract/openai/responses.ts"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, type UpstreamAnswer, startUpstream } from "./upstream.ts"

let server: TestServer
let upstream: Upstream
let directory: string
let next: UpstreamAnswer = { text: "Hello there." }
beforeAll(async () => {
  upstream = await startUpstream(() => next)
  directory = mkdtempSync(join(tmpdir(), "umpire-exact-"))
  const file = join(directory, "umpire.yaml")
  const workers = [{ url: upstream.url, dialect: "openai" }]
  // A worker that failed is not asked again at once; the one that is made to fail has a name of its own.
  const models = ["far", "frail"].map((sku) => ({ sku, context_tokens_max: 32_768, workers }))
  writeFileSync(file, JSON.stringify({ models }))
  server = await startServer({
    env: {
      UMPIRE_CONFIG: file,
      UMPIRE_COMPAT_DECISIONS_GA: "true",
    },
  })
})
afterAll(async () => {
  await server.stop()
  await upstream.close()
  rmSync(directory, { recursive: true })
})

const respond = async (body: Record<string, unknown>): Promise<ResponseObject> =>
  ResponseObject.parse(await (await server.post("/v1/responses", { model: "far", ...body })).json())

const idOf = (event: Record<string, unknown>): string => (event["response"] as { id: string }).id

const at = async (method: string, path: string): Promise<Response> =>
  await fetch(server.url + path, { method, headers: { authorization: `Bearer ${server.key}` } })

const send = async (bytes: Uint8Array, coding: string, path = "/v1/chat/completions"): Promise<Response> =>
  await server.post(path, bytes, { "content-encoding": coding })

describe("responses", () => {
  test("penalties reach the worker and are echoed; without them they are zero", async () => {
    const given = await respond({ input: "x", presence_penalty: 0.5, frequency_penalty: -2 })
    expect(given).toMatchObject({ presence_penalty: 0.5, frequency_penalty: -2 })
    expect(upstream.requests.at(-1)).toMatchObject({ presence_penalty: 0.5, frequency_penalty: -2 })
    expect(await respond({ input: "x" })).toMatchObject({ presence_penalty: 0, frequency_penalty: 0 })
    const over = await server.post("/v1/responses", { model: "far", input: "x", presence_penalty: 2.1 })
    expect(over.status).toBe(400)
  })

  test("an answer without words has one empty message, with its events", async () => {
    next = { reasoning: "Nothing to say." }
    const response = await server.post("/v1/responses", { model: "far", input: "x", stream: true })
    next = { text: "Hello there." }
    const events = (await response.text())
      .split("\n\n")
      .flatMap((block) =>
        block === "" ? [] : [ResponseEvent.parse(JSON.parse(block.split("data: ")[1] ?? ""))],
      )
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const types = events.map(({ type }) => type)
    expect(types.slice(-6)).toEqual([
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ])
    const last = events.at(-1)
    expect(last?.type === "response.completed" && last.response.output.map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
    ])
    // Also before it ended: complete, never null.
    expect(events[0]).toMatchObject({ response: { usage: { total_tokens: expect.any(Number) as number } } })
  })

  test("calls alone need no message", async () => {
    next = { calls: [{ name: "look", arguments: "{}" }] }
    const { output } = await respond({ input: "x", tools: [{ type: "function", name: "look" }] })
    next = { text: "Hello there." }
    expect(output.map(({ type }) => type)).toEqual(["function_call"])
  })

  const call = { type: "function_call", call_id: "call_a", name: "look", arguments: "{}" }
  const result = { type: "function_call_output", call_id: "call_a", output: "sunny" }

  test("a result without its call is refused; with it, in this request or before, it is not", async () => {
    const alone = await server.post("/v1/responses", { model: "far", input: [result] })
    expect(alone.status).toBe(400)
    expect(await alone.json()).toMatchObject({
      error: {
        param: "input",
        message: expect.stringContaining(
          "no tool call found for function call output with call_id call_a",
        ) as string,
      },
    })
    const first = await respond({ input: [{ role: "user", content: "Weather?" }, call] })
    expect((await respond({ input: [result], previous_response_id: first.id })).status).toBe("completed")
    expect((await respond({ input: [call, result] })).status).toBe("completed")
  })

  test("every input item is listed with a status and the id of its kind", async () => {
    const reasoning = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] }
    const said = { role: "assistant", content: "Let me look." }
    const { id } = await respond({
      input: [{ role: "user", content: "Weather?" }, reasoning, said, call, result],
    })
    const listed = await fetch(`${server.url}/v1/responses/${id}/input_items?order=asc`, {
      headers: { authorization: `Bearer ${server.key}` },
    })
    const { data } = (await listed.json()) as { data: Record<string, unknown>[] }
    expect(data.map((item) => [String(item["id"]).split("_")[0], item["type"], item["status"]])).toEqual([
      ["msg", "message", "completed"],
      ["rs", "reasoning", "completed"],
      ["msg", "message", "completed"],
      ["fc", "function_call", "completed"],
      ["fco", "function_call_output", "completed"],
    ])
    expect(data[2]?.["content"]).toEqual([
      { type: "output_text", text: "Let me look.", annotations: [], logprobs: [] },
    ])
  })

  test("a turn that fails on a socket takes what it continued with it; others stay", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${server.key}` },
    })
    const messages: string[] = []
    socket.on("message", (text: Buffer) => messages.push(text.toString()))
    await once(socket, "open")
    const turn = async (body: Record<string, unknown>): Promise<Record<string, unknown>> => {
      socket.send(
        JSON.stringify({ type: "response.create", model: "far", store: false, input: "x", ...body }),
      )
      for (;;) {
        await expect.poll(() => messages.length).toBeGreaterThan(0)
        const event = JSON.parse(messages.shift() ?? "") as { type: string; response?: { id: string } }
        if (event.type === "error" || /completed|failed|incomplete$/.test(event.type)) return event
      }
    }
    const kept = idOf(await turn({}))
    const first = idOf(await turn({}))
    next = { text: "Hello there, this breaks off.", breaksAfter: 3 }
    const failed = await turn({ model: "frail", previous_response_id: first })
    expect(failed).toMatchObject({ type: "response.failed" })
    next = { text: "Hello there." }
    expect(await turn({ previous_response_id: first })).toMatchObject({
      error: { code: "previous_response_not_found" },
    })
    expect(await turn({ previous_response_id: kept, input: [result] })).toMatchObject({ status: 400 })
    expect(await turn({ previous_response_id: kept })).toMatchObject({
      error: { code: "previous_response_not_found" },
    })
    socket.close()
  })
})

describe("addresses", () => {
  test.each(["/v1/assistants", "/v1/chat/other", "/v1/responses/a/b/c"])(
    "%s answers OpenAI's error",
    async (path) => {
      const response = await at("POST", path)
      expect(response.status).toBe(404)
      expect(await response.json()).toEqual({
        error: {
          code: "not_found",
          type: "invalid_request_error",
          param: null,
          message: expect.any(String) as string,
        },
      })
    },
  )

  test("an unknown address of the Platform API keeps its own form", async () => {
    expect(await (await at("GET", "/v1/organizations/x/y/z")).json()).toMatchObject({
      error: { details: null },
    })
  })

  test.each([
    ["PUT", "/v1/chat/completions", "POST, GET, HEAD"],
    ["GET", "/v1/moderations", "POST"],
    ["PUT", "/v1/responses", "POST, GET, HEAD"],
    ["PATCH", "/v1/responses/resp_1", "GET, DELETE, HEAD"],
    ["DELETE", "/v1/decisions", "POST"],
    ["PUT", "/v1/organizations/o/models", "POST, GET, HEAD"],
  ])("%s %s is 405 and names %s", async (method, path, allowed) => {
    const response = await at(method, path)
    expect([response.status, response.headers.get("allow")]).toEqual([405, allowed])
    expect(await response.json()).toMatchObject({ error: { code: "method_not_allowed" } })
  })
})

describe("compressed bodies", () => {
  const body = JSON.stringify({ model: "far", messages: [{ role: "user", content: "hello ".repeat(2000) }] })
  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["GZIP", gzipSync],
  ] as const)("%s is decoded", async (coding, encode) => {
    expect((await send(encode(body), coding)).status).toBe(200)
    expect(upstream.requests.at(-1)?.messages[0]?.content).toBe("hello ".repeat(2000))
  })

  test.each([
    ["zip", gzipSync(body)],
    ["gzip, gzip", gzipSync(gzipSync(body))],
    ["gzip", Buffer.from(body)],
    ["gzip", gzipSync(body).subarray(0, 60)],
    ["br", gzipSync(body)],
  ])("%s that is not one is 415", async (coding, bytes) => {
    const response = await send(bytes, coding)
    expect(response.status).toBe(415)
    expect(await response.json()).toMatchObject({ error: { code: "unsupported_encoding" } })
  })

  test("what grows beyond the limit is refused, also where it grows too steeply", async () => {
    const large = await send(gzipSync(Buffer.alloc(33 * 1024 * 1024, 32)), "gzip")
    expect([large.status, ((await large.json()) as { error: { code: string } }).error.code]).toEqual([
      413,
      "body_over_limit",
    ])
    // 8 MiB are within the limit, but not from these few bytes.
    expect((await send(brotliCompressSync(Buffer.alloc(8 * 1024 * 1024, 32)), "br")).status).toBe(413)
  })

  test("decisions are decoded as well, and a false encoding is 422 there, as their contract has it", async () => {
    const questions = [{ type: "predicate", instructions: "Is it a greeting?" }]
    const bytes = JSON.stringify({ model: "umpire-decide", input: "hello", questions })
    expect((await send(gzipSync(bytes), "gzip", "/v1/decisions")).status).toBe(200)
    expect((await send(Buffer.from(bytes), "gzip", "/v1/decisions")).status).toBe(422)
  })
})

test("with decisions_ga the openai client decides about a conversation with tools; images are refused", async () => {
  const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 })
  const call = { type: "function_call" as const, call_id: "c1", name: "look", arguments: "{}" }
  const decision = await client.decisions.create({
    model: "umpire-decide",
    prompt_cache_key: "k",
    input: [
      { role: "system", content: "You are a weather service." },
      { role: "user", content: [{ type: "input_json", data: { city: "Oslo" } }] },
      call,
      { type: "function_call_output", call_id: "c1", output: "It rains heavily." },
    ],
    questions: [
      { type: "predicate", name: "rain", instructions: [{ type: "input_text", text: "Does it rain?" }] },
    ],
  })
  expect(decision.answers).toMatchObject([{ type: "predicate", name: "rain" }])
  const content = [{ type: "input_image" as const, image_url: "data:image/png;base64,AA==" }]
  const refused = client.decisions.create({
    model: "umpire-decide",
    input: [{ role: "user", content }],
    questions: [{ type: "predicate", instructions: "Is it red?" }],
  })
  await expect(refused).rejects.toThrow(/images, files and audio are not supported/)
})
