/**
 * Answers with a secret that come in adversarial pieces over every wire, and a check that finds the secret only where it stands
 * whole: nothing of it may reach the client, and of what stands before it only what was checked.
 */
import fc from "fast-check"
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect } from "vitest"
import type { TestServer } from "./server.ts"

const secret = "the code is 4711-0815"
/** The secret is not longer than the hold-back. */
export const chunkingWindows = { window_characters: 64, hold_back_characters: 24 }

interface Chunking {
  readonly wire: "chat" | "responses" | "messages"
  readonly isStreamed: boolean
  /** Where the secret stands; in arguments and in a format some characters are escapes of JSON. */
  readonly place: "text" | "arguments" | "format"
  readonly thought: string
  readonly before: string
  readonly after: string
  /** Characters of each piece, and bytes of each write, in turn. */
  readonly pieces: readonly number[]
  readonly writes: readonly number[]
  /** Which characters are escaped, in turn. */
  readonly escapes: readonly boolean[]
}

const filler = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom("a", "b", " ", ". ", "é", "😀", "\n", "T"), maxLength })
const sizes = (most: number): fc.Arbitrary<number[]> =>
  fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 9 }), fc.integer({ min: 30, max: most })), {
    minLength: 1,
    maxLength: 20,
  })
const chunking: fc.Arbitrary<Chunking> = fc.record({
  wire: fc.constantFrom("chat", "responses", "messages"),
  isStreamed: fc.constantFrom(true, true, true, false),
  place: fc.constantFrom("text", "text", "arguments", "format"),
  thought: filler(60),
  before: filler(300),
  after: filler(150),
  pieces: sizes(200),
  writes: sizes(900),
  escapes: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
})

/** A model that writes the answers, and one that decides about them: `url` is the root of both. */
export async function startChunkedUpstream(): Promise<{
  readonly url: string
  readonly cases: Chunking[]
  close(): Promise<void>
}> {
  const cases: Chunking[] = []
  const server = createServer((request, response) => {
    void serve(request, response, cases).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cases,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  cases: readonly Chunking[],
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  if (request.method === "GET") return void response.end("{}")
  const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked
  if (request.url === "/v1/systemone") {
    const noul = body.state?.includes(secret) === true ? 1 : 0
    return void response.end(JSON.stringify({ answers: { q0: { noul } }, usage: { input_tokens: 5 } }))
  }
  const given = cases[Number(/\d+/.exec(JSON.stringify(body.messages?.at(-1)))?.[0])]
  if (!given) throw new Error("The request names no answer")
  response.writeHead(200, { "content-type": "text/event-stream" })
  const bytes = Buffer.from([...events(given)].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = given.writes[turn % given.writes.length] ?? 1
    response.write(bytes.subarray(at, at + length))
    at += length
  }
  response.end("data: [DONE]\n\n")
}

interface Asked {
  readonly state?: string
  readonly messages?: readonly unknown[]
}

const delta = (value: object): object => ({ choices: [{ index: 0, delta: value, finish_reason: null }] })

function* events(given: Chunking): Generator<object> {
  for (const piece of cut(given.thought, given.pieces)) yield delta({ reasoning_content: piece })
  if (given.place === "arguments") {
    const call = { name: "note", arguments: "" }
    yield delta({ tool_calls: [{ index: 0, id: "up", type: "function", function: call }] })
    for (const piece of cut(answerOf(given), given.pieces))
      yield delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] })
  } else for (const piece of cut(answerOf(given), given.pieces)) yield delta({ content: piece })
  const finish_reason = given.place === "arguments" ? "tool_calls" : "stop"
  yield { choices: [{ index: 0, delta: {}, finish_reason }] }
  yield { choices: [], usage: { prompt_tokens: 9, completion_tokens: 9 } }
}

function answerOf({ place, before, after, escapes }: Chunking): string {
  const text = before + secret + after
  if (place === "text") return text
  const escaped = Array.from(text, (sign, at) =>
    escapes[at % escapes.length] === true
      ? sign.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      : JSON.stringify(sign).slice(1, -1),
  )
  return `{"note":"${escaped.join("")}"}`
}

/** A provider sends whole characters. */
function cut(text: string, lengths: readonly number[]): string[] {
  const characters = Array.from(text)
  const pieces: string[] = []
  for (let at = 0, turn = 0; at < characters.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    pieces.push(characters.slice(at, at + length).join(""))
    at += length
  }
  return pieces
}

const concurrency = 4

/** `writer` is the model of the upstream; a guardrail blocks what it writes by the upstream's decisions. */
export async function expectNothingPasses(
  server: TestServer,
  cases: Chunking[],
  { writer, count, seed }: { readonly writer: string; readonly count: number; readonly seed: number },
): Promise<void> {
  const first = cases.length
  cases.push(...fc.sample(chunking, { numRuns: count, seed }))
  let next = first
  const run = async (): Promise<void> => {
    for (let at = next++; at < cases.length; at = next++) {
      const given = cases[at]
      if (given) await expectBlocked(server, writer, given, at)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, run))
}

async function expectBlocked(server: TestServer, writer: string, given: Chunking, at: number): Promise<void> {
  const body = { model: writer, stream: given.isStreamed, ...bodyOf(given, `Answer ${at}`) }
  const response = await server.post(pathOf[given.wire], body, { "anthropic-version": "2023-06-01" })
  const text = await response.text()
  const told = JSON.stringify({ at, seen: text.slice(0, 2000), given })
  expect(response.status, told).toBe(200)
  expect(text, told).toMatch(/content_filter|"stop_reason":"refusal"/)
  // However often it is encoded, nothing of the secret is anywhere.
  expect(unescaped(unescaped(text)), told).not.toMatch(/4711|0815|11-0|code is/)
  const { before, place, wire, isStreamed } = given
  if (!isStreamed) expect(saidWhole[wire](JSON.parse(text) as never), told).toBe("")
  else {
    const may = place === "text" ? before : `{"note":"${before}`
    expect(may.startsWith(unescapedIn(place, saidIn(text))), told).toBe(true)
  }
}

interface WholeItem {
  readonly type: string
  readonly content?: readonly { readonly text: string }[]
  readonly arguments?: string
}

/** What an answer that is not streamed says, without thoughts. */
const saidWhole = {
  chat: ({
    choices: [choice],
  }: {
    choices: { message: { content: string | null; tool_calls?: unknown } }[]
  }) => (choice?.message.content ?? "") + (choice?.message.tool_calls === undefined ? "" : "called"),
  responses: ({ output }: { output: readonly WholeItem[] }) =>
    output
      .filter(({ type }) => type !== "reasoning")
      .map(({ content = [], arguments: given = "" }) => content.map(({ text }) => text).join("") + given)
      .join(""),
  messages: ({ content }: { content: readonly { readonly text?: string; readonly input?: unknown }[] }) =>
    content.map(({ text = "", input }) => text + (input === undefined ? "" : "called")).join(""),
}

const pathOf = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" }
const schema = { type: "object", properties: { note: { type: "string" } }, required: ["note"] }

function bodyOf({ wire, place }: Chunking, content: string): object {
  const messages = [{ role: "user", content }]
  const tool = { name: "note", parameters: schema }
  const format = { name: "note", schema: { ...schema, additionalProperties: false } }
  if (wire === "messages") {
    const output_config = { format: { type: "json_schema", schema: format.schema } }
    return {
      max_tokens: 2000,
      messages,
      ...(place === "arguments" ? { tools: [{ name: "note", input_schema: schema }] } : {}),
      ...(place === "format" ? { output_config } : {}),
    }
  }
  if (wire === "responses")
    return {
      input: content,
      ...(place === "arguments" ? { tools: [{ type: "function", ...tool }] } : {}),
      ...(place === "format" ? { text: { format: { type: "json_schema", ...format } } } : {}),
    }
  return {
    messages,
    ...(place === "arguments" ? { tools: [{ type: "function", function: tool }] } : {}),
    ...(place === "format" ? { response_format: { type: "json_schema", json_schema: format } } : {}),
  }
}

/** What the deltas of a stream say, without thoughts. */
function saidIn(stream: string): string {
  const events = stream.split("\n").filter((line) => line.startsWith("data: {"))
  return events.map((line) => saidBy(JSON.parse(line.slice(6)) as StreamedEvent)).join("")
}

interface StreamedEvent {
  readonly type?: string
  readonly choices?: readonly { readonly delta: StreamedDelta }[]
  readonly delta?: string | StreamedDelta
}

interface StreamedDelta {
  readonly content?: string
  readonly tool_calls?: readonly { readonly function: { readonly arguments?: string } }[]
  readonly text?: string
  readonly partial_json?: string
}

function saidBy({ type = "", choices, delta }: StreamedEvent): string {
  if (typeof delta === "string") return type.startsWith("response.reasoning") ? "" : delta
  const { content, tool_calls, text, partial_json } = delta ?? choices?.[0]?.delta ?? {}
  return content ?? tool_calls?.[0]?.function.arguments ?? text ?? partial_json ?? ""
}

const unescapedIn = (place: Chunking["place"], text: string): string =>
  place === "text" ? text : unescaped(text).replaceAll("\\n", "\n")

const unescaped = (text: string): string =>
  text.replaceAll(/\\u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
