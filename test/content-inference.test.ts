/** Kept content of chats, responses and embeddings: as it was asked and generated, and nothing where nothing is kept. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import { WebSocket } from "ws"
import { scriptedModel } from "./scripted-model.ts"
import { type TestServer, startServer } from "./server.ts"
import { bytesUnder } from "./written-files.ts"

const said = ["It was", " ann@example.com", " indeed"]
const embedding = "all-minilm-l6-v2"
const eventually = { timeout: 60_000, interval: 50 }

let folder: string
let server: TestServer
let organization: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-content-inference-"))
  const { file } = await scriptedModel({ pieces: said })
  const config = join(folder, "umpire.yaml")
  writeFileSync(config, JSON.stringify({ models: [{ sku: "scripted", file }] }))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
  organization = (await own("GET", "/v1/organizations")).body.data[0].id as string
  // What starts with its first use: the analytics process and both models.
  await own("GET", "/v1/organizations/ORG/sequences")
  await sendAll("Begin")
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

interface Answer {
  readonly status: number
  // Bodies of every shape; what is not there fails the expectations.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  readonly sequence: string
}

async function own(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(server.url + path.replace("ORG", organization), {
    method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false
  const sequence = response.headers.get("x-umpire-sequence") ?? ""
  return { status: response.status, body: isJson ? JSON.parse(text) : text, sequence }
}

const keep = async (settings: object): Promise<unknown> =>
  (await own("PUT", "/v1/organizations/ORG/content_settings", settings)).status

let turns = 0

/** Answers the id of the sequence. */
async function converse(input: string): Promise<string> {
  const tag = `turn=${++turns}`
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${server.key}`, "x-umpire-tags": tag },
  })
  await new Promise((resolve) => socket.once("open", resolve))
  const ended = new Promise<void>((resolve) =>
    socket.on("message", (text: Buffer) => {
      if (text.includes("response.completed")) resolve()
    }),
  )
  const request = { model: "scripted", input, store: false, temperature: 0 }
  socket.send(JSON.stringify({ type: "response.create", ...request }))
  await ended
  socket.close()
  const newest = async (): Promise<Answer["body"]> =>
    (await own("GET", `/v1/organizations/ORG/sequences?endpoint=responses_ws&tag=${tag}`)).body.data
  return await vi.waitFor(async () => {
    const [found] = await newest()
    expect(found).toBeDefined()
    return found.seq_id as string
  }, eventually)
}

/** Every way of generating, each with the text as what a user says; answers the sequences. */
async function sendAll(text: string): Promise<Record<string, string>> {
  const chat = { model: "scripted", messages: [{ role: "user", content: text }], temperature: 0 }
  const response = { model: "scripted", input: text, store: false, temperature: 0 }
  const sent = {
    chat: await own("POST", "/v1/chat/completions", { ...chat, metadata: { reference: "case 7" } }),
    chatStream: await own("POST", "/v1/chat/completions", { ...chat, stream: true, n: 2 }),
    response: await own("POST", "/v1/responses", { ...response, instructions: "Be brief." }),
    responseStream: await own("POST", "/v1/responses", { ...response, stream: true }),
    embedding: await own("POST", "/v1/embeddings", { model: embedding, input: [text, "other"] }),
  }
  for (const [name, { status, body }] of Object.entries(sent))
    expect([name, status], JSON.stringify(body)).toEqual([name, 200])
  const sequences = Object.entries(sent).map(([name, { sequence }]) => [name, sequence])
  return { ...Object.fromEntries(sequences), socket: await converse(text) }
}

const contentOf = async (sequence: string | undefined): Promise<Answer> =>
  await own("GET", `/v1/organizations/ORG/sequences/${sequence}/content`)

/** Whether it stands in any file of the server or in its log. */
function isWritten(marker: string): boolean {
  const bytes = bytesUnder(server.dataDirectory)
  return [...bytes, Buffer.from(server.stdout() + server.stderr())].some((one) => one.includes(marker))
}

test("where nothing is kept, no text of a chat, a response or an embedding is in a file or a log", async () => {
  const marker = "marker-generated-nowhere-4731"
  const sequences = await sendAll(`Say ${marker}`)
  for (const [name, sequence] of Object.entries(sequences))
    expect([name, (await contentOf(sequence)).status]).toEqual([name, 404])
  expect(isWritten(marker)).toBe(false)
  expect(isWritten("ann@example.com")).toBe(false)
  expect(isWritten(sequences["chat"] ?? "")).toBe(true)
})

test("evidence and answers are kept of each of them, streamed or not, and encrypted on the disk", async () => {
  await keep({ keep: "evidence_and_answers" })
  const marker = "marker-generated-4732"
  const text = `Say ${marker}`
  const sequences = await sendAll(text)
  const user = { role: "user", content: text }
  const answer = { role: "assistant", content: said.join("") }
  const expected: Record<string, object> = {
    chat: {
      endpoint: "chat_completions",
      reference: "case 7",
      input: { messages: [user] },
      output: [answer],
    },
    chatStream: { endpoint: "chat_completions", input: { messages: [user] }, output: [answer, answer] },
    response: {
      endpoint: "responses",
      input: { messages: [{ role: "system", content: "Be brief." }, user] },
      output: [answer],
    },
    responseStream: { endpoint: "responses", input: { messages: [user] }, output: [answer] },
    embedding: { endpoint: "embeddings", model: embedding, input: { texts: [text, "other"] }, output: null },
    socket: { endpoint: "responses_ws", model: "scripted", input: { messages: [user] }, output: [answer] },
  }
  for (const [name, content] of Object.entries(expected)) {
    const { status, body } = await contentOf(sequences[name])
    expect([name, status]).toEqual([name, 200])
    expect(body.data, name).toMatchObject({ level: "evidence_and_answers", evidence: null, ...content })
  }
  expect(isWritten(marker)).toBe(false)
  const deleted = await own("POST", "/v1/organizations/ORG/content/delete", { reference: "case 7" })
  expect(deleted.body.data).toEqual({ deleted: 1 })
  expect((await contentOf(sequences["chat"])).status).toBe(404)
})

test("answers alone have no conversation, patterns redact both, and tokens are not kept", async () => {
  const patterns = [{ name: "email", pattern: "[\\w.]+@[\\w.]+" }]
  await keep({ keep: "answers", redact: { patterns } })
  // The thread that redacts starts with its first work; on a busy machine that takes longer than a request may.
  await vi.waitFor(async () => {
    const messages = [{ role: "user", content: "Begin" }]
    const { sequence } = await own("POST", "/v1/chat/completions", { model: "scripted", messages })
    expect((await contentOf(sequence)).status).toBe(200)
  }, eventually)
  const dropped = async (): Promise<number> =>
    (await own("GET", "/v1/organizations/ORG/content_settings")).body.data.dropped.count as number
  const before = await dropped()
  const alone = await sendAll("Write to bob@example.com")
  expect((await contentOf(alone["chat"])).body.data).toMatchObject({
    level: "answers",
    input: null,
    output: [{ content: "It was [email] indeed" }],
    redactions: 1,
  })
  expect((await contentOf(alone["embedding"])).status).toBe(404)
  await keep({ keep: "evidence_and_answers", redact: { patterns } })
  const both = await sendAll("Write to bob@example.com")
  expect((await contentOf(both["chatStream"])).body.data).toMatchObject({
    input: { messages: [{ content: "Write to [email]" }] },
    output: [{ content: "It was [email] indeed" }, { content: "It was [email] indeed" }],
  })
  const tokens = await own("POST", "/v1/embeddings", { model: embedding, input: [101, 7592, 102] })
  expect((await contentOf(tokens.sequence)).body.data.input).toEqual({ messages: [], texts: [null] })
  expect(await dropped()).toBe(before)
})
