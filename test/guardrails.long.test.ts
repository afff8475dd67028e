/** Guardrails with their full counts: a thousand adversarial chunkings over the wire, and a check whose worker is full. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { chunkingWindows, expectNothingPasses, startChunkedUpstream } from "./guardrail-chunkings.ts"
import { type TestServer, startServer } from "./server.ts"

const chunkings = 1000
let server: TestServer
let chunked: Awaited<ReturnType<typeof startChunkedUpstream>>
let folder: string
let client: ReturnType<typeof createClient>
let org: string
const full = createServer((request, response) =>
  response.writeHead(request.method === "GET" ? 200 : 429).end("{}"),
)

const model = (sku: string, url: string, dialect: string): object => ({
  sku,
  context_tokens_max: 8192,
  workers: [{ url, dialect }],
})

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-guardrails-"))
  chunked = await startChunkedUpstream()
  await new Promise<void>((resolve) => full.listen(0, "127.0.0.1", resolve))
  const fullUrl = `http://127.0.0.1:${(full.address() as AddressInfo).port}`
  const models = [
    model("chunked", `${chunked.url}/v1`, "openai"),
    model("seer", chunked.url, "systemone"),
    model("full", fullUrl, "systemone"),
  ]
  const config = join(folder, "umpire.yaml")
  writeFileSync(config, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  org = (await client.listOrganizations())[0]?.id ?? ""
  for (const name of ["seer", "full"]) {
    const questions = [{ type: "predicate" as const, name: "found", instructions: "Is it there?" }]
    await client.createQuestionSet({ params: { org_id: org }, body: { name, model: name, questions } })
  }
})
afterAll(async () => {
  await server.stop()
  await chunked.close()
  full.closeAllConnections()
  await new Promise((resolve) => full.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

test(`nothing of a blocked answer reaches the client in ${chunkings} adversarial chunkings`, async () => {
  const body = { name: "g", question_set: "seer", stage: "output" as const, ...chunkingWindows }
  const { id } = await client.createGuardrail({ params: { org_id: org }, body })
  await expectNothingPasses(server, chunked.cases, { writer: "chunked", count: chunkings, seed: 4711 })
  await client.deleteGuardrail({ params: { org_id: org, guardrail_id: id } })
})

test.each([
  ["closed", 429],
  ["open", 200],
] as const)("a check whose worker stays full: on_error %s is %d", async (on_error, status) => {
  const body = { name: "g", question_set: "full", stage: "input" as const, on_error }
  const { id } = await client.createGuardrail({ params: { org_id: org }, body })
  chunked.cases.length = 0
  const given = { before: "Good day. ", after: "", thought: "", pieces: [5], writes: [9], escapes: [false] }
  chunked.cases.push({ wire: "chat", isStreamed: false, place: "text", ...given })
  const messages = [{ role: "user", content: "Answer 0" }]
  const response = await server.post("/v1/chat/completions", { model: "chunked", messages })
  expect([response.status, await response.text()]).toEqual([
    status,
    expect.stringContaining(status === 429 ? "overloaded" : "Good day."),
  ])
  await client.deleteGuardrail({ params: { org_id: org, guardrail_id: id } })
})
