/** The Responses API on the running server: the order of its events, what it stores, and its socket. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { WebSocket } from "ws"
import { ResponseEvent, ResponseObject } from "../src/contract/openai/responses.ts"
import { type TestServer, startServer } from "./server.ts"

const model = "umpire-chat"
const idleConnections = 200
const mebibyte = 1024 * 1024

let server: TestServer
beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_ENGINE_THREADS: "1" } })
})
afterAll(async () => {
  await server.stop()
})

const authorized = (): Record<string, string> => ({ authorization: `Bearer ${server.key}` })

async function streamed(body: Record<string, unknown>): Promise<ResponseEvent[]> {
  const response = await server.post("/v1/responses", { model, stream: true, ...body })
  expect(response.status).toBe(200)
  const blocks = (await response.text()).split("\n\n").filter((block) => block !== "")
  return blocks.map((block) => {
    const [name, data] = block.split("\n")
    const event = ResponseEvent.parse(JSON.parse(data?.replace("data: ", "") ?? ""))
    expect(name).toBe(`event: ${event.type}`)
    return event
  })
}

const typesOf = (events: readonly ResponseEvent[]): string[] => events.map(({ type }) => type)

function expectGapless(events: readonly ResponseEvent[]): void {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
}

/** With runs of equal types written once. */
const squeezed = (types: readonly string[]): string[] =>
  types.filter((type, index) => type !== types[index - 1])

const tools = [
  {
    type: "function",
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 12 } },
      required: ["city"],
      additionalProperties: false,
    },
    strict: true,
  },
]

describe("streamed events", () => {
  test("a text comes in the promised order, every event and response valid", async () => {
    const events = await streamed({ input: "What is the capital of France?", temperature: 0 })
    expectGapless(events)
    expect(squeezed(typesOf(events))).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ])
    const deltas = events.flatMap((event) =>
      event.type === "response.output_text.delta" ? [event.delta] : [],
    )
    const last = events.at(-1)
    if (last?.type !== "response.completed") throw new Error("it did not complete")
    const [item] = last.response.output
    expect(item?.type === "message" && item.content[0]?.text).toBe(deltas.join(""))
    expect(last.response.usage.output_tokens).toBeGreaterThan(0)
    expect(last.response.usage.total_tokens).toBe(
      last.response.usage.input_tokens + last.response.usage.output_tokens,
    )
  })

  test("a function call comes in the promised order", async () => {
    const events = await streamed({ input: "Weather in Paris?", tools, tool_choice: "required" })
    expectGapless(events)
    expect(squeezed(typesOf(events))).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ])
    const deltas = events.flatMap((event) =>
      event.type === "response.function_call_arguments.delta" ? [event.delta] : [],
    )
    const done = events.find((event) => event.type === "response.function_call_arguments.done")
    expect(done?.arguments).toBe(deltas.join(""))
    expect(Object.keys(JSON.parse(done?.arguments ?? "") as object)).toEqual(["city"])
  })

  test("an answer cut by its limit ends incomplete, and says why", async () => {
    // After one token no answer has ended by itself, however short.
    const events = await streamed({ input: "Tell me a story.", temperature: 0, max_output_tokens: 1 })
    expectGapless(events)
    const last = events.at(-1)
    if (last?.type !== "response.incomplete") throw new Error("it was not cut")
    expect(last.response.status).toBe("incomplete")
    expect(last.response.incomplete_details).toEqual({ reason: "max_output_tokens" })
    expect(last.response.output[0]).toMatchObject({ status: "incomplete" })
    expect(last.response.usage.output_tokens).toBe(1)
  })

  test("streamed and unstreamed usage are the same", async () => {
    const body = { input: "Count to three.", temperature: 0, max_output_tokens: 12, store: false }
    const whole = ResponseObject.parse(await (await server.post("/v1/responses", { model, ...body })).json())
    const last = (await streamed(body)).at(-1)
    if (!last || !("response" in last)) throw new Error("no response")
    expect(last.response.usage.input_tokens).toBe(whole.usage.input_tokens)
    expect(last.response.usage.output_tokens).toBe(whole.usage.output_tokens)
  })
})

const get = async (path: string, method = "GET"): Promise<Response> =>
  await fetch(`${server.url}${path}`, { method, headers: authorized() })

describe("stored responses", () => {
  test("store:false leaves nothing behind", async () => {
    const body = { model, input: "Hello", max_output_tokens: 4, store: false }
    const { id, store } = ResponseObject.parse(await (await server.post("/v1/responses", body)).json())
    expect(store).toBe(false)
    expect((await get(`/v1/responses/${id}`)).status).toBe(404)
    const next = await server.post("/v1/responses", { model, input: "More", previous_response_id: id })
    expect(next.status).toBe(404)
    expect(await next.json()).toMatchObject({ error: { code: "previous_response_not_found" } })
  })

  test("an organization that keeps nothing is told so, and keeps nothing", async () => {
    const organizations = (await (await get("/v1/organizations")).json()) as { data: { id: string }[] }
    const organization = organizations.data[0]?.id ?? ""
    const body = { model, input: "Hello", max_output_tokens: 4 }
    const before = ResponseObject.parse(await (await server.post("/v1/responses", body)).json())
    expect((await get(`/v1/responses/${before.id}`)).status).toBe(200)
    const set = async (stored_responses_days: number | null): Promise<number> =>
      (
        await fetch(`${server.url}/v1/organizations/${organization}`, {
          method: "PATCH",
          headers: { ...authorized(), "content-type": "application/json" },
          body: JSON.stringify({ data_persistence: { stored_responses_days } }),
        })
      ).status
    expect(await set(0)).toBe(200)
    // What was stored before is out of sight at once.
    expect((await get(`/v1/responses/${before.id}`)).status).toBe(404)
    const after = ResponseObject.parse(await (await server.post("/v1/responses", body)).json())
    expect(after.store).toBe(false)
    expect((await get(`/v1/responses/${after.id}`)).status).toBe(404)
    expect(await set(null)).toBe(200)
  })

  test("a response that ended cannot be cancelled", async () => {
    const body = { model, input: "Hello", max_output_tokens: 4 }
    const { id } = ResponseObject.parse(await (await server.post("/v1/responses", body)).json())
    const cancelled = await get(`/v1/responses/${id}/cancel`, "POST")
    expect(cancelled.status).toBe(409)
  })

  test("a running response is stopped by cancel, and its stream says so", async () => {
    const response = await server.post("/v1/responses", {
      model,
      input: "Write on and on.",
      stream: true,
      text: longText,
    })
    expect(response.status).toBe(200)
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    while (!text.includes("output_text.delta")) text += (await reader?.read())?.value ?? ""
    const id = /"id":"(resp_\w+)"/.exec(text)?.[1] ?? ""
    expect((await get(`/v1/responses/${id}`)).status).toBe(200)
    const cancelled = await get(`/v1/responses/${id}/cancel`, "POST")
    expect(cancelled.status).toBe(200)
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) text += next.value
    expect(text).toContain('"status":"cancelled"')
  })
})

/** A schema that keeps a small model writing, so long that a busy machine is in time to stop it. */
const longText = {
  format: {
    type: "json_schema",
    name: "long",
    schema: {
      type: "object",
      properties: { texts: { type: "array", items: { type: "string", minLength: 900 }, minItems: 3 } },
      required: ["texts"],
      additionalProperties: false,
    },
  },
}

interface ErrorMessage {
  readonly type: "error"
  readonly status: number
  readonly error: { readonly code: string }
}

class Client {
  readonly socket: WebSocket
  readonly #messages: string[] = []
  #wake: (() => void) | null = null

  static async open(): Promise<Client> {
    const client = new Client()
    await new Promise((resolve, reject) => client.socket.once("open", resolve).once("error", reject))
    return client
  }

  private constructor() {
    this.socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, { headers: authorized() })
    this.socket.on("message", (text: Buffer) => {
      this.#messages.push(text.toString())
      this.#wake?.()
    })
  }

  send(message: unknown): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message))
  }

  create(request: Record<string, unknown>): void {
    this.send({ type: "response.create", model, max_output_tokens: 5, store: false, ...request })
  }

  async next(): Promise<ResponseEvent | ErrorMessage> {
    while (this.#messages.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
    const message = JSON.parse(this.#messages.shift() ?? "") as ResponseEvent | ErrorMessage
    if (message.type !== "error") ResponseEvent.parse(message)
    return message
  }

  /** Reads on to the end of a turn. */
  async ended(): Promise<ResponseObject> {
    for (;;) {
      const event = await this.next()
      if (event.type === "error") throw new Error(event.error.code)
      if (event.type === "response.completed" || event.type === "response.incomplete") return event.response
    }
  }

  async closed(): Promise<number> {
    return await new Promise((resolve) => this.socket.once("close", resolve))
  }
}

function resident(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8")
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
}

async function pong({ socket }: Client): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once("pong", () => resolve())
    socket.ping()
  })
}

describe("over a socket", () => {
  test("turns continue each other without being stored", async () => {
    const client = await Client.open()
    client.create({ input: "Hello", stream: true })
    const first = await client.ended()
    client.create({ input: "And now?", previous_response_id: first.id })
    const second = await client.ended()
    expect(second.usage.input_tokens).toBeGreaterThan(first.usage.input_tokens)
    client.socket.close()
    const other = await Client.open()
    other.create({ input: "And now?", previous_response_id: first.id })
    expect(await other.next()).toMatchObject({
      type: "error",
      status: 404,
      error: { code: "previous_response_not_found" },
    })
    other.socket.close()
  })

  test("generate:false answers a completed empty response that can be continued", async () => {
    const client = await Client.open()
    client.create({ input: "Remember the word blue.", generate: false })
    const warm = await client.ended()
    expect(warm).toMatchObject({ status: "completed", output: [], usage: { output_tokens: 0 } })
    client.create({ input: "Which word?", previous_response_id: warm.id })
    const next = await client.ended()
    expect(next.usage.input_tokens).toBeGreaterThan(15)
    client.socket.close()
  })

  test("mistakes are answered and the connection goes on", async () => {
    const client = await Client.open()
    const mistakes: [unknown, number, string][] = [
      ["{not json", 400, "invalid_json"],
      ["[]", 400, "invalid_request"],
      [{ type: "response.steer" }, 400, "invalid_request"],
      [{ type: "response.create", model, input: "x", nonsense: 1 }, 400, "unknown_parameter"],
      [{ type: "response.create", model, input: "x", background: true }, 400, "unsupported_parameter"],
      [{ type: "response.create", model: "none", input: "x" }, 404, "model_not_found"],
      [
        { type: "response.create", model, input: "x", previous_response_id: "resp_none" },
        404,
        "previous_response_not_found",
      ],
    ]
    for (const [message, status, code] of mistakes) {
      client.send(message)
      expect(await client.next()).toMatchObject({ type: "error", status, error: { code } })
    }
    client.create({ input: "Hello" })
    expect((await client.ended()).output.length).toBeGreaterThan(0)
    client.socket.close()
  })

  test("a second request while one runs is refused, and the first goes on", async () => {
    const client = await Client.open()
    client.create({ input: "Hello", max_output_tokens: 30 })
    client.create({ input: "Too early" })
    const seen: string[] = []
    for (let event = await client.next(); ; event = await client.next()) {
      seen.push(event.type === "error" ? event.error.code : event.type)
      if (event.type === "response.completed" || event.type === "response.incomplete") break
    }
    expect(seen).toContain("response_in_progress")
    client.socket.close()
  })

  test("a message of 10 MiB closes the connection with 1009", async () => {
    const client = await Client.open()
    const closed = client.closed()
    client.send(JSON.stringify({ type: "response.create", model, input: "x".repeat(10 * mebibyte) }))
    expect(await closed).toBe(1009)
  })

  test("a client that vanishes mid-answer stops the engine and frees its place", async () => {
    const clients = await Promise.all(Array.from({ length: 9 }, async () => await Client.open()))
    // More than the engine writes side by side: the last would wait for minutes if the others went on.
    for (const client of clients)
      client.create({ input: "Write on and on.", max_output_tokens: 3000, text: longText })
    await clients[0]?.next()
    for (const client of clients) client.socket.terminate()
    const body = { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 3 }
    const answer = await server.post("/v1/chat/completions", body)
    expect(answer.status).toBe(200)
  })

  test("credentials are checked before there is a connection", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
      headers: { authorization: "Bearer wrong" },
    })
    const status = await new Promise((resolve) => {
      socket.once("unexpected-response", (_request, response) => resolve(response.statusCode))
      socket.once("error", () => undefined)
    })
    expect(status).toBe(401)
  })

  test(`${idleConnections} idle connections are held with flat memory`, async () => {
    const clients = await Promise.all(
      Array.from({ length: idleConnections }, async () => await Client.open()),
    )
    await Promise.all(clients.map(pong))
    const before = resident()
    for (let round = 0; round < 5; round++) await Promise.all(clients.map(pong))
    expect(resident() - before).toBeLessThan(32 * mebibyte)
    for (const { socket } of clients) socket.terminate()
  })
})
