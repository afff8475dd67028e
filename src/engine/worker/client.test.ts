import { predicate } from "../branch.ts"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, describe, expect, test } from "vitest"
import type { GenerateWork, GenerationEvent } from "../generate/generate.ts"
import { noGenerationUsage } from "../generate/generate.ts"
import { workerClient } from "./client.ts"
import {
  type StreamLine,
  digestHeader,
  digestOf,
  encodeLine,
  healthPath,
  protocolHeader,
  protocolVersion,
} from "./wire.ts"

const never = new AbortController().signal
const work = { organizationId: "o", evidence: "e", branches: [predicate("a"), predicate("b")] }
const generation = { organizationId: "o", messages: [] } as unknown as GenerateWork

let server: Server | undefined

afterEach(async () => {
  server?.closeAllConnections()
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(null)))
  server = undefined
})

type Answer = (response: ServerResponse, request: IncomingMessage, kind: string) => void

async function workerThat(answer: Answer): Promise<ReturnType<typeof workerClient>> {
  server = createServer((request, response) => {
    response.setHeader(protocolHeader, protocolVersion)
    let body = ""
    request.on("data", (chunk: Buffer) => (body += chunk.toString()))
    request.on("end", () => {
      const { kind } = body === "" ? { kind: "none" } : (JSON.parse(body) as { kind: string })
      answer(response, request, kind)
    })
  })
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return workerClient({ url: `http://127.0.0.1:${port}`, model: "m", key: "secret" })
}

function say(response: ServerResponse, value: unknown, status = 200): void {
  const text = JSON.stringify(value)
  response.writeHead(status, { [digestHeader]: digestOf(text) }).end(text)
}

describe("a score", () => {
  test("comes back as it was computed, and the key goes along", async () => {
    const keys = new Set<string | undefined>()
    const margins = [0.1 + 0.2, -5e-324]
    const client = await workerThat((response, request) => {
      keys.add(request.headers.authorization)
      say(response, { inputTokens: 9, margins })
    })
    const prepared = await client.scorer.prepare(work, never)
    expect(prepared.inputTokens).toBe(9)
    expect([...(await prepared.run(never))]).toEqual(margins)
    expect([...keys]).toEqual(["Bearer secret"])
  })

  test.each([
    ["one margin too few", { inputTokens: 1, margins: [1] }],
    ["one margin too many", { inputTokens: 1, margins: [1, 2, 3] }],
    ["a margin that is no number", { inputTokens: 1, margins: [1, null] }],
  ])("with %s is not used", async (_name, answer) => {
    const client = await workerThat((response) => say(response, answer))
    const prepared = await client.scorer.prepare(work, never)
    await expect(prepared.run(never)).rejects.toMatchObject({ code: "invalid_worker_response" })
  })

  test("that was changed on its way is not used", async () => {
    const client = await workerThat((response) => {
      const text = JSON.stringify({ inputTokens: 9, margins: [] })
      response.writeHead(200, { [digestHeader]: digestOf(text) }).end(text.replace("9", "8"))
    })
    await expect(client.scorer.prepare(work, never)).rejects.toMatchObject({
      code: "invalid_worker_response",
    })
  })

  test("that the worker refuses fails with the worker's code and time to come back", async () => {
    const error = { code: "overloaded", message: "Cannot: full", retryAfterMs: 1234 }
    const client = await workerThat((response) => say(response, { error }, 429))
    await expect(client.scorer.prepare(work, never)).rejects.toMatchObject(error)
  })

  test("that something else answers with an error is the worker's failure", async () => {
    const client = await workerThat((response) => response.writeHead(404).end("<html>"))
    await expect(client.scorer.prepare(work, never)).rejects.toMatchObject({ code: "inference_failed" })
  })

  test("whose connection breaks is the worker's failure", async () => {
    const client = await workerThat((response) => response.destroy())
    await expect(client.scorer.prepare(work, never)).rejects.toMatchObject({ code: "inference_failed" })
  })

  test("ends with the caller's reason when the caller leaves", async () => {
    const gone = new AbortController()
    const client = await workerThat(() => gone.abort(new Error("left")))
    await expect(client.scorer.prepare(work, gone.signal)).rejects.toThrow("left")
  })
})

const text = (word: string): StreamLine => ({
  kind: "event",
  event: { kind: "text", text: word, logprobs: null },
  usage: { ...noGenerationUsage, outputTokens: 1 },
})
const end: StreamLine = { kind: "end", usage: { ...noGenerationUsage, outputTokens: 2 } }

async function read(lines: string): Promise<{ words: string[]; outputTokens: number; error: unknown }> {
  const client = await workerThat((response, _request, kind) => {
    if (kind === "generate") response.writeHead(200).end(lines)
    else say(response, { inputTokensMost: 3, outputTokensMost: 4 })
  })
  const prepared = await client.generator.prepare(generation, never)
  const words: string[] = []
  const note = (event: GenerationEvent): void => void (event.kind === "text" && words.push(event.text))
  try {
    for await (const event of prepared.run(4, never)) note(event)
    return { words, outputTokens: prepared.usage().outputTokens, error: null }
  } catch (error) {
    return { words, outputTokens: prepared.usage().outputTokens, error }
  }
}

describe("a stream", () => {
  test("comes event by event, with what was used", async () => {
    const lines = [text("x"), text("y"), end].map(encodeLine).join("")
    expect(await read(lines)).toEqual({ words: ["x", "y"], outputTokens: 2, error: null })
  })

  test("that is cut off is known to be cut off", async () => {
    const found = await read(encodeLine(text("x")))
    expect(found).toMatchObject({ words: ["x"], outputTokens: 1, error: { code: "invalid_worker_response" } })
  })

  test("with a changed line ends there", async () => {
    const lines = encodeLine(text("x")) + encodeLine(text("y")).replace('"y"', '"z"') + encodeLine(end)
    expect(await read(lines)).toMatchObject({ words: ["x"], error: { code: "invalid_worker_response" } })
  })

  test("that fails at the worker fails with its words", async () => {
    const error = { code: "inference_failed", message: "Cannot go on" }
    const lines = encodeLine({ kind: "failed", error, usage: noGenerationUsage })
    expect(await read(lines)).toMatchObject({ words: [], error })
  })
})

describe("a worker of another version", () => {
  test.each([["1"], [undefined]])("that says %s is not used and fails its check", async (said) => {
    const client = await workerThat((response) => {
      response.removeHeader(protocolHeader)
      if (said !== undefined) response.setHeader(protocolHeader, said)
      say(response, { inputTokens: 9, margins: [] })
    })
    await expect(client.scorer.prepare(work, never)).rejects.toMatchObject({
      code: "invalid_worker_response",
      message: expect.stringMatching(/version .* of the worker protocol/),
    })
    await expect(client.check(never)).rejects.toThrow(/worker protocol/)
  })

  test("hears from the gateway which one that speaks", async () => {
    const said = new Set<unknown>()
    const client = await workerThat((response, request) => {
      said.add(request.headers[protocolHeader])
      say(response, { inputTokens: 9, margins: [] })
    })
    await client.scorer.prepare(work, never)
    expect([...said]).toEqual([protocolVersion])
  })
})

test.each([
  [200, true],
  [503, false],
])("a health check that is answered %i passes: %s", async (status, passes) => {
  const client = await workerThat((response, request) =>
    response.writeHead(request.url === healthPath ? status : 500).end("{}"),
  )
  const found = await client.check(never).then(
    () => true,
    () => false,
  )
  expect(found).toBe(passes)
})
