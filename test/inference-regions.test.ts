/** What an answer says of where and how it was made is true of the worker that made it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"

/** A worker of one region: fails every chat, or writes one word and keeps what it was asked. */
interface RegionWorker {
  readonly url: string
  readonly asked: Record<string, unknown>[]
  close(): void
}

async function startWorker(fails: boolean): Promise<RegionWorker> {
  const asked: Record<string, unknown>[] = []
  const server: Server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => (body += text))
    request.on("end", () => {
      if (request.method === "GET") return response.end('{"object":"list","data":[]}')
      asked.push(JSON.parse(body) as Record<string, unknown>)
      if (fails) return response.writeHead(500).end("{}")
      response.writeHead(200, { "content-type": "text/event-stream" })
      const delta = { role: "assistant", content: "Hello" }
      for (const choice of [
        { index: 0, delta },
        { index: 0, delta: {}, finish_reason: "stop" },
      ])
        response.write(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [choice] })}\n\n`)
      const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
      response.write(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [], usage })}\n\n`)
      return response.end("data: [DONE]\n\n")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, asked, close: () => server.close().closeAllConnections() }
}

let folder: string
let server: TestServer
let paris: RegionWorker
let oslo: RegionWorker
beforeAll(async () => {
  paris = await startWorker(true)
  oslo = await startWorker(false)
  folder = mkdtempSync(join(tmpdir(), "umpire-regions-"))
  const config = {
    gateway: { region: "paris" },
    regions: [
      { id: "paris", country: "FR", latitude: 48.9, longitude: 2.4 },
      { id: "oslo", country: "NO", latitude: 59.9, longitude: 10.8 },
    ],
    models: [
      {
        sku: "far",
        context_tokens_max: 2048,
        workers: [
          { region: "paris", url: paris.url, dialect: "openai" },
          { region: "oslo", url: oslo.url, dialect: "openai" },
        ],
      },
    ],
  }
  writeFileSync(join(folder, "umpire.yaml"), JSON.stringify(config))
  server = await startServer({
    env: { UMPIRE_CONFIG: join(folder, "umpire.yaml") },
  })
})
afterAll(async () => {
  await server.stop()
  paris.close()
  oslo.close()
  rmSync(folder, { recursive: true, force: true })
})

test.each([
  ["responses", "/v1/responses", { input: "Hi" }],
  ["chat", "/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
])("a stream of %s that moves on to another region names the one that answered", async (_, path, body) => {
  const before = paris.asked.length
  const response = await server.post(path, { model: "far", stream: true, ...body })
  const text = await response.text()
  expect(paris.asked.length).toBeGreaterThan(before)
  expect(text).toContain("Hello")
  expect([response.status, response.headers.get("x-umpire-region")]).toEqual([200, "oslo"])
})

test("a worker is sent the temperature and top_p that a response names, and nothing else", async () => {
  const answers = await Promise.all(
    [{}, { temperature: 0.2, top_p: 0.5 }].map(async (given) => {
      const response = await server.post("/v1/responses", { model: "far", input: "Hi", ...given })
      const { temperature, top_p } = (await response.json()) as Record<string, unknown>
      return { temperature, top_p }
    }),
  )
  const sent = oslo.asked.slice(-2).map(({ temperature, top_p }) => ({ temperature, top_p }))
  expect(answers).toEqual([
    { temperature: 1, top_p: 1 },
    { temperature: 0.2, top_p: 0.5 },
  ])
  expect(sent).toEqual(expect.arrayContaining([{}, { temperature: 0.2, top_p: 0.5 }]))
})
