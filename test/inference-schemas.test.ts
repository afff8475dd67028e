/** JSON schemas through HTTP: what is left open is said, wrong ones are the caller's fault, and violations are reported. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { itemsMax } from "../src/contract/openai/limits.ts"
import { type TestServer, startServer } from "./server.ts"

type Json = Record<string, unknown>

const header = "x-umpire-schema-not-enforced"
/** What the worker of this test answers, whatever it is asked. */
const workersAnswer = '{"count":4}'
const chunk = (delta: Json, finish_reason: string | null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const objectOf = (a: Json): string => JSON.stringify({ type: "object", properties: { a }, required: ["a"] })

let server: TestServer
let worker: Server
let directory: string
beforeAll(async () => {
  worker = createServer((request, response) => {
    request.resume()
    response.setHeader("content-type", "text/event-stream")
    response.end(`${chunk({ content: workersAnswer }, null)}${chunk({}, "stop")}data: [DONE]\n\n`)
  })
  await new Promise<void>((resolve) => worker.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(worker.address() as AddressInfo).port}`
  directory = mkdtempSync(join(tmpdir(), "umpire-schemas-"))
  const file = join(directory, "umpire.yaml")
  const far = { sku: "far", context_tokens_max: 2048, workers: [{ url, dialect: "openai" }] }
  writeFileSync(file, JSON.stringify({ models: [far] }))
  server = await startServer({ env: { UMPIRE_CONFIG: file } })
})
afterAll(async () => {
  await server.stop()
  worker.closeAllConnections()
  worker.close()
  rmSync(directory, { recursive: true })
})

interface Asked {
  readonly model?: string
  readonly strict?: boolean
  readonly stream?: boolean
}

/** In place of it stands a schema that is already JSON: JSON.stringify does not reach the bottom of the deep ones. */
const placeholder = "the schema"

const send = async (path: string, body: Json, schema: string): Promise<Response> =>
  await server.post(
    path,
    JSON.stringify(body).replace(JSON.stringify(placeholder), () => schema),
  )

const question = { model: "umpire-chat", messages: [{ role: "user", content: "Hello" }], max_tokens: 40 }

const chat = async (
  schema: string,
  { model = "umpire-chat", strict = true, stream = false }: Asked = {},
): Promise<Response> => {
  const json_schema = { name: "thing", schema: placeholder, strict }
  const response_format = { type: "json_schema", json_schema }
  return await send("/v1/chat/completions", { ...question, model, stream, response_format }, schema)
}

const respond = async (
  schema: string,
  { model = "umpire-chat", strict = true, stream = false }: Asked = {},
): Promise<Response> => {
  const text = { format: { type: "json_schema", name: "thing", schema: placeholder, strict } }
  const body = { model, input: "Hello", max_output_tokens: 40, stream, text }
  return await send("/v1/responses", body, schema)
}

const withTool = async (schema: string): Promise<Response> => {
  const tools = [{ type: "function", function: { name: "act", parameters: placeholder } }]
  return await send("/v1/chat/completions", { ...question, tools }, schema)
}

describe("keywords that are left open", () => {
  const open = objectOf({ type: "string", pattern: "\\bx", maxLength: 3 })
  const closed = objectOf({ type: "boolean" })

  test.each([
    ["a chat", chat, false],
    ["a streamed chat", chat, true],
    ["a response", respond, false],
    ["a streamed response", respond, true],
  ] as const)("are in the header of %s, and refused when it is strict", async (_, ask, stream) => {
    const loose = await ask(open, { strict: false, stream })
    expect(loose.status).toBe(200)
    expect(loose.headers.get(header)).toBe("#/properties/a/pattern")
    await loose.text()
    const enforced = await ask(closed, { strict: false, stream })
    expect(enforced.status).toBe(200)
    expect(enforced.headers.get(header)).toBeNull()
    await enforced.text()
    expect((await ask(open, { stream })).status).toBe(400)
  })

  test("of a function stand after its name", async () => {
    const answered = await withTool(open)
    expect(answered.status).toBe(200)
    expect(answered.headers.get(header)).toBe("act#/properties/a/pattern")
  })

  test("a worker elsewhere is held to nothing by a schema that is not strict", async () => {
    const answered = await chat(closed, { model: "far", strict: false })
    expect(answered.status).toBe(200)
    expect(answered.headers.get(header)).toBe("#")
  })
})

const nested = (levels: number, before: string, after: string): string =>
  `${before.repeat(levels)}{"type":"string"}${after.repeat(levels)}`

const wrongSchemas = [
  ["an option that is the schema itself", '{"anyOf":[{"$ref":"#"},{"const":1}]}'],
  ["a part that is the schema itself", '{"allOf":[{"$ref":"#"}]}'],
  ["a reference that cannot be decoded", '{"$ref":"#/%E0%A4%A"}'],
  ["an enum of 300,000", `{"enum":[${Array.from({ length: 300_000 }, (_, index) => index).join(",")}]}`],
  ["a list of 200,000 types", `{"type":[${Array.from({ length: 200_000 }, () => '"string"').join(",")}]}`],
  ["lists nested 1,500 deep", `{"const":${nested(1500, "[", "]")}}`],
  ["a schema nested 4,900 deep", nested(4900, '{"type":"array","items":', "}")],
] as const

async function expectRefused(response: Response): Promise<void> {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  expect({ status: response.status, code: error.code }).toEqual({ status: 400, code: "invalid_request" })
}

describe("wrong schemas are refused", () => {
  test.each(wrongSchemas)("%s", async (_, schema) => {
    await expectRefused(await chat(schema))
    await expectRefused(await chat(schema, { strict: false }))
    await expectRefused(await respond(schema))
    await expectRefused(await withTool(schema))
  })

  test("and do not open the circuit breaker", async () => {
    for (let count = 0; count < 12; count++)
      await expectRefused(await chat(wrongSchemas[count % wrongSchemas.length]?.[1] ?? ""))
    expect((await server.post("/v1/chat/completions", question)).status).toBe(200)
  })
})

describe("small schemas with large expansions", () => {
  test.each([
    ["a pattern with exponentially many states", { type: "string", pattern: "(a|b)*a(a|b){20}" }],
    [
      "256 items of 256 items of 256 items",
      JSON.parse(nested(3, '{"type":"array","minItems":256,"items":', "}")) as unknown,
    ],
    [
      "200 choices that must all be made",
      {
        allOf: Array.from({ length: 200 }, (_, i) => ({
          anyOf: [{ required: [`a${i}`] }, { required: ["b"] }],
        })),
      },
    ],
    [
      "1,000 options that overlap",
      {
        oneOf: Array.from({ length: 1000 }, (_, index) => ({
          properties: { a: { type: "string" }, [`k${index}`]: { type: "integer" } },
          required: ["a"],
        })),
      },
    ],
  ])("%s are refused", async (_, schema) => {
    await expectRefused(await chat(JSON.stringify(schema)))
    await expectRefused(await withTool(JSON.stringify(schema)))
  })

  test("repetitions of repetitions are written within their bound", async () => {
    const schema = { type: "string", pattern: "^((((((a){0,2}){0,2}){0,2}){0,2}){0,2}){0,2}$" }
    const answered = await chat(JSON.stringify(schema))
    expect(answered.status).toBe(200)
    const { choices } = (await answered.json()) as { choices: { message: { content: string } }[] }
    expect(JSON.parse(choices[0]?.message.content ?? "")).toMatch(/^a{0,64}$/)
  })

  test("one message more than the limit is refused", async () => {
    const messages = Array.from({ length: itemsMax + 1 }, () => ({ role: "user", content: "a" }))
    await expectRefused(await server.post("/v1/chat/completions", { ...question, messages }))
  })
})

describe("a worker that does not keep to a strict schema", () => {
  const schema = { type: "object", properties: { count: { type: "integer", maximum: 3 } } }
  const message =
    "Cannot complete the response: the remote worker did not keep to the strict schema: in the answer, /count must be <= 3"

  test("is reported in place of the answer", async () => {
    const answered = await chat(JSON.stringify(schema), { model: "far" })
    expect(answered.status).toBe(500)
    expect(await answered.json()).toMatchObject({ error: { code: "inference_failed", message } })
  })

  test("is reported at the end of a stream", async () => {
    const text = await (await chat(JSON.stringify(schema), { model: "far", stream: true })).text()
    expect(text).not.toContain("[DONE]")
    const last = text.trimEnd().split("\n\n").at(-1)?.replace("data: ", "") ?? ""
    expect(JSON.parse(last)).toMatchObject({ error: { code: "inference_failed", message } })
  })

  test("is reported as a failed response over a WebSocket", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: `Bearer ${server.key}` },
    })
    await new Promise((resolve) => socket.once("open", resolve))
    const failed = new Promise<unknown>((resolve) => {
      socket.on("message", (text: Buffer) => {
        const event = JSON.parse(text.toString()) as { type: string }
        if (event.type === "response.failed" || event.type === "error") resolve(event)
      })
    })
    const format = { type: "json_schema", name: "thing", schema, strict: true }
    socket.send(JSON.stringify({ type: "response.create", model: "far", input: "Hello", text: { format } }))
    expect(await failed).toMatchObject({ type: "response.failed", response: { error: { message } } })
    socket.terminate()
  })
})
