/** Files and batches over the wire: OpenAI's own client, what is refused, what stops, and who sees what. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { makeOrganization, operatorOf } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

const mebibyte = 1024 * 1024

let server: TestServer
let client: OpenAI
const folder = mkdtempSync(join(tmpdir(), "umpire-batches-"))
/** A model that answers the first part of a batch, and the other parts when it is told to, so that there is time to stop them. */
const firstPartLines = 32
let held = Promise.withResolvers<void>()
const slow = createServer((request, response) => {
  void text(request).then(async (body) => {
    const { state = "" } = JSON.parse(body || "{}") as { state?: string }
    if (Number(/number (\d+)/.exec(state)?.[1] ?? 0) >= firstPartLines) await held.promise
    const answers = { q0: { type: "noul", noul: 0.75 } }
    response.end(JSON.stringify({ answers, usage: { input_tokens: 5, output_tokens: 0 } }))
  })
})
beforeAll(async () => {
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve))
  const config = join(folder, "umpire.yaml")
  const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
  const model = { sku: "slow", context_tokens_max: 4096, workers: [{ url, dialect: "systemone" }] }
  writeFileSync(config, JSON.stringify({ models: [model] }))
  server = await startServer({
    env: {
      UMPIRE_CONFIG: config,
      // The worker is in this process, which may stand still for longer than an attempt waits.
      UMPIRE_ROUTING_ATTEMPT_TIMEOUT_MS: "600000",
      UMPIRE_FILES_FILE_MIB_MAX: "2",
      UMPIRE_FILES_ORGANIZATION_MIB_MAX: "4",
      UMPIRE_BATCHES_LINES_MAX: "300",
    },
  })
  client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 })
})
afterAll(async () => {
  held.resolve()
  await server.stop()
  slow.closeAllConnections()
  slow.close()
  rmSync(folder, { recursive: true })
})

const decision = (input: string, model = "umpire-decide") => ({
  model,
  input,
  questions: [{ type: "predicate", name: "urgent", instructions: "Is it urgent?" }],
})
const requestLine = (id: string, url: string, body: unknown): string =>
  JSON.stringify({ custom_id: id, method: "POST", url, body })
const decisionLines = (count: number, model?: string): string =>
  Array.from({ length: count }, (_, n) =>
    requestLine(`row-${n}`, "/v1/decisions", decision(`Mail number ${n}: the house burns`, model)),
  ).join("\n")

type Endpoint = Parameters<OpenAI["batches"]["create"]>[0]["endpoint"]

async function upload(content: string | Uint8Array, by = client): Promise<OpenAI.FileObject> {
  return await by.files.create({ file: await toFile(Buffer.from(content), "in.jsonl"), purpose: "batch" })
}

async function start(content: string | Uint8Array, endpoint: string, window = "24h"): Promise<OpenAI.Batch> {
  const { id: input_file_id } = await upload(content)
  // The client's types know OpenAI's own endpoints and window only.
  return await client.batches.create({
    input_file_id,
    endpoint: endpoint as Endpoint,
    completion_window: window as "24h",
  })
}

async function ended({ id }: { id: string }): Promise<OpenAI.Batch> {
  let batch: OpenAI.Batch | undefined
  await expect
    .poll(async () => (batch = await client.batches.retrieve(id)).status, { interval: 50 })
    .toMatch(/^(completed|failed|expired|cancelled)$/)
  return batch as OpenAI.Batch
}

interface ResultLine {
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: Record<string, unknown> } | null
  readonly error: { readonly code: string } | null
}

async function results(id: string | null | undefined): Promise<ResultLine[]> {
  if (!id) return []
  const text = await (await client.files.content(id)).text()
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ResultLine)
}

async function clear(): Promise<void> {
  for await (const { id } of client.files.list()) await client.files.delete(id)
}

test("the example of OpenAI's client runs unchanged, for chat", async () => {
  const body = { model: "umpire-chat", messages: [{ role: "user", content: "Hello" }], max_tokens: 4 }
  const lines = ["request-1", "request-2"].map((id) => requestLine(id, "/v1/chat/completions", body))
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join("\n")), "batchinput.jsonl"),
    purpose: "batch",
  })
  expect(file).toMatchObject({ object: "file", purpose: "batch", filename: "batchinput.jsonl" })
  const batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { description: "nightly eval job" },
  })
  expect(batch).toMatchObject({ object: "batch", status: "validating", completion_window: "24h" })
  const done = await ended(batch)
  expect(done).toMatchObject({
    status: "completed",
    errors: null,
    error_file_id: null,
    metadata: { description: "nightly eval job" },
    request_counts: { total: 2, completed: 2, failed: 0 },
  })
  const output = await results(done.output_file_id)
  expect(output.map(({ custom_id }) => custom_id)).toEqual(["request-1", "request-2"])
  expect(output[0]?.response).toMatchObject({ status_code: 200, body: { object: "chat.completion" } })
  const listed = await client.batches.list({ limit: 1 })
  expect(listed.data.map(({ id }) => id)).toEqual([batch.id])
  expect(await client.files.retrieve(file.id)).toMatchObject({ bytes: Buffer.byteLength(lines.join("\n")) })
  await clear()
})

test.each([
  ["/v1/decisions", decision("The house burns"), "answers"],
  [
    "/v1/systemone",
    { state: "The house burns", questions: { a: { type: "predicate", ask: "Is it urgent?" } } },
    "",
  ],
  ["/v1/responses", { model: "umpire-chat", input: "Hello", max_output_tokens: 16, store: false }, "output"],
  ["/v1/embeddings", { model: "all-minilm-l6-v2", input: "Hello" }, "data"],
])("a line of %s is answered as the request itself", async (url, body, field) => {
  const alone = await server.post(url, body)
  const expected = (await alone.json()) as Record<string, unknown>
  const done = await ended(await start(requestLine("one", url, body), url))
  const [line] = [...(await results(done.output_file_id)), ...(await results(done.error_file_id))]
  expect(line?.response?.status_code).toBe(alone.status)
  if (field === "output") expect(line?.response?.body).toHaveProperty("output")
  else if (alone.status === 200 && field) expect(line?.response?.body[field]).toEqual(expected[field])
  else expect(line?.response?.body).toEqual(expected)
  await clear()
})

test("a line that is refused is in the file of errors, with the answer it would have had", async () => {
  const lines = [
    requestLine("good", "/v1/decisions", decision("It burns")),
    requestLine("bad", "/v1/decisions", { ...decision("It burns"), model: "nothing" }),
    "",
    requestLine("blank", "/v1/decisions", decision(" ")),
  ]
  const done = await ended(await start(`${lines.join("\r\n")}\r\n`, "/v1/decisions"))
  expect(done).toMatchObject({ status: "completed", request_counts: { total: 3, completed: 1, failed: 2 } })
  expect((await results(done.output_file_id)).map(({ custom_id }) => custom_id)).toEqual(["good"])
  const errors = await results(done.error_file_id)
  expect(errors.map(({ custom_id, response }) => [custom_id, response?.status_code])).toEqual([
    ["bad", 422],
    ["blank", 422],
  ])
  expect(errors[0]?.response?.body).toMatchObject({ error: { code: "unknown_model" } })
  await clear()
})

const good = requestLine("a", "/v1/decisions", decision("x"))

describe("an input that cannot be run fails as a whole, and says where", () => {
  const utf16 = Buffer.from(`\uFEFF${good}`, "utf16le")
  test.each<[string, string | Uint8Array, [string, number | null][]]>([
    ["a broken line", `${good}\n{"custom_id":\n`, [["invalid_json_line", 2]]],
    ["a list", "[1]", [["invalid_json_line", 1]]],
    ["a name twice", `${good}\n\n${good}`, [["duplicate_custom_id", 3]]],
    ["no name", good.replace('"a"', '""'), [["invalid_custom_id", 1]]],
    ["a name that is too long", good.replace('"a"', `"${"a".repeat(513)}"`), [["invalid_custom_id", 1]]],
    ["another method", good.replace("POST", "GET"), [["invalid_method", 1]]],
    ["another endpoint", good.replace("decisions", "embeddings"), [["mismatched_url", 1]]],
    ["no body", good.replace(/"body":.*$/, '"body":[]}'), [["invalid_body", 1]]],
    ["a stream", good.replace('"model"', '"stream":true,"model"'), [["invalid_body", 1]]],
    ["Latin-1", Buffer.from(good.replace('"x"', '"\u00fc"'), "latin1"), [["invalid_json_line", 1]]],
    ["UTF-16", utf16, [["invalid_json_line", 1]]],
    ["nothing", "\n \n", [["empty_file", null]]],
    ["a line more than may be", decisionLines(301), [["too_many_lines", null]]],
  ])("%s", async (_, content, errors) => {
    const done = await ended(await start(content, "/v1/decisions"))
    expect(done.status).toBe("failed")
    expect(done.errors?.data?.map(({ code, line }) => [code, line])).toEqual(errors)
    expect([done.output_file_id, done.request_counts]).toEqual([null, { total: 0, completed: 0, failed: 0 }])
    await clear()
  })
})

const form = (fields: Record<string, string | Blob>): FormData => {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.append(name, value)
  return made
}
const send = async (
  body: string | FormData,
  headers: Record<string, string> = {},
): Promise<[number, string]> => {
  const reply = await fetch(`${server.url}/v1/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, ...headers },
    body,
  })
  const answered = (await reply.json()) as { error?: { code: string } }
  return [reply.status, answered.error?.code ?? ""]
}
const staged = (): string[] => readdirSync(join(server.dataDirectory, "files", "staging"))
const blob = (bytes: number): Blob => new Blob([new Uint8Array(bytes)])

describe("uploads", () => {
  test("a file of the limit is taken, and one byte more is refused and leaves nothing", async () => {
    expect(await send(form({ purpose: "batch", file: blob(2 * mebibyte) }))).toEqual([200, ""])
    expect(await send(form({ file: blob(2 * mebibyte + 1), purpose: "batch" }))).toEqual([
      413,
      "body_over_limit",
    ])
    expect(staged()).toEqual([])
    await clear()
  })

  test("an organization has no more than its share, and deleting makes room", async () => {
    for (let n = 0; n < 2; n++)
      expect(await send(form({ purpose: "batch", file: blob(2 * mebibyte) }))).toEqual([200, ""])
    expect(await send(form({ purpose: "batch", file: blob(1) }))).toEqual([413, "body_over_limit"])
    await clear()
    expect(await send(form({ purpose: "batch", file: blob(1) }))).toEqual([200, ""])
    await clear()
  })

  test.each<[string, string | FormData, Record<string, string>, [number, string]]>([
    ["no file", form({ purpose: "batch" }), {}, [400, "invalid_request"]],
    ["another purpose", form({ purpose: "vision", file: blob(1) }), {}, [400, "invalid_request"]],
    ["no form", "{}", { "content-type": "application/json" }, [415, "not_json"]],
    ["no boundary", "x", { "content-type": "multipart/form-data" }, [400, "invalid_request"]],
    [
      "a form that ends in the middle",
      '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\nabc',
      { "content-type": "multipart/form-data; boundary=b" },
      [400, "invalid_request"],
    ],
    [
      "a compressed body",
      "x",
      { "content-type": "multipart/form-data", "content-encoding": "gzip" },
      [415, ""],
    ],
  ])("%s is refused", async (_, body, headers, [status, code]) => {
    const answered = await send(body, headers)
    expect(answered[1]).toContain(code)
    expect(answered[0]).toBe(status)
    expect(staged()).toEqual([])
  })

  test("bytes come back as they were, named by their checksum", async () => {
    const bytes = Buffer.from(Array.from({ length: 1000 }, (_, n) => n % 256))
    const file = (await upload(bytes)) as OpenAI.FileObject & { sha256: string }
    expect(Buffer.from(await (await client.files.content(file.id)).arrayBuffer())).toEqual(bytes)
    expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: "file", deleted: true })
    await expect(client.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    const left = readdirSync(join(server.dataDirectory, "files"), { recursive: true, encoding: "utf8" })
    expect(left.filter((name) => name.includes(file.sha256))).toEqual([])
  })
})

test("a batch that is cancelled keeps what is done, and says what was not run", async () => {
  const batch = await start(decisionLines(300, "slow"), "/v1/decisions")
  await expect
    .poll(async () => (await client.batches.retrieve(batch.id)).request_counts?.completed, {
      timeout: 60_000,
      interval: 5,
    })
    .toBeGreaterThan(0)
  expect((await client.batches.cancel(batch.id)).status).toBe("cancelling")
  held.resolve()
  const done = await ended(batch)
  expect(done.status).toBe("cancelled")
  expect((await client.batches.cancel(batch.id)).status).toBe("cancelled")
  const output = await results(done.output_file_id)
  const errors = await results(done.error_file_id)
  expect(output.length).toBe(done.request_counts?.completed)
  expect(output.length).toBeGreaterThan(0)
  expect(errors.every(({ error }) => error?.code === "batch_cancelled")).toBe(true)
  expect(new Set([...output, ...errors].map(({ custom_id }) => custom_id)).size).toBe(300)
  await clear()
})

const batch = async (
  id: string,
  method: string,
  body?: object,
): Promise<[number, Record<string, unknown>]> => {
  const response = await fetch(`${server.url}/v1/batches/${id}`, {
    method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return [response.status, (await response.json()) as Record<string, unknown>]
}

test("batches are named, found by name, kind and state, and deleted once they have ended", async () => {
  const done = await ended(await start(decisionLines(1), "/v1/decisions"))
  const metadata = { name: "Nightly 100 %", kind: "evaluation" }
  expect(await batch(done.id, "POST", { metadata })).toMatchObject([200, { id: done.id, metadata }])
  const ids = async (query: Record<string, string>): Promise<string[]> => {
    const page = await client.get<{ data: { id: string }[] }>("/batches", { query: { limit: 100, ...query } })
    return page.data.map(({ id }) => id)
  }
  expect(await ids({ name: "nightly 100 %" })).toEqual([done.id])
  expect(await ids({ name: "nightly 100_%" })).toEqual([])
  expect(await ids({ kind: "evaluation", status: "completed" })).toEqual([done.id])
  expect(await ids({ kind: "evaluation", status: "open" })).toEqual([])
  expect(await ids({ name: "in.jsonl" })).not.toContain(done.id)
  // Without a name of its own it is found by that of its file.
  await batch(done.id, "POST", { metadata: null })
  expect(await ids({ name: "IN.jsonl" })).toContain(done.id)

  const slow = await start(decisionLines(200), "/v1/decisions")
  expect(await batch(slow.id, "DELETE")).toMatchObject([
    409,
    { error: { message: expect.stringContaining("has not ended") } },
  ])
  await client.batches.cancel(slow.id)
  await ended(slow)
  expect(await batch(done.id, "DELETE")).toEqual([200, { id: done.id, object: "batch", deleted: true }])
  expect(await batch(done.id, "GET")).toMatchObject([404, {}])
  expect(await batch(done.id, "DELETE")).toMatchObject([404, {}])
  await expect(client.files.retrieve(done.output_file_id ?? "")).rejects.toThrow("404")
  expect((await client.files.retrieve(done.input_file_id)).id).toBe(done.input_file_id)
})

test("umpire batches sends a file, waits for its end, and brings answers and errors", async () => {
  const refused = requestLine("refused", "/v1/decisions", {
    model: "no-such-model",
    input: "a",
    questions: [],
  })
  writeFileSync(join(folder, "rows.jsonl"), `${decisionLines(2)}\n${refused}\n`)
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
  const batches = (...args: string[]) =>
    spawnSync(process.execPath, [umpire, "batches", ...args], { env, cwd: folder, encoding: "utf8" })
  const created = batches("create", "rows.jsonl", "--wait", "--json")
  const { id, request_counts } = JSON.parse(created.stdout) as OpenAI.Batch
  expect([created.status, request_counts]).toEqual([1, { total: 3, completed: 2, failed: 1 }])
  expect(batches("list").stdout).toContain(id)
  expect(batches("show", id).stdout).toContain("2 done, 1 failed, of 3 lines")
  expect(batches("results", id, "--out", "answers.jsonl", "--errors", "errors.jsonl").status).toBe(1)
  const idsOf = (file: string): string[] =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/"custom_id":"([^"]+)"/g)].map(
      ([, one = ""]) => one,
    )
  expect([idsOf("answers.jsonl"), idsOf("errors.jsonl")]).toEqual([["row-0", "row-1"], ["refused"]])
  const cancelled = batches("cancel", id)
  expect([cancelled.status, cancelled.stderr]).toEqual([
    1,
    "umpire batches: Cannot cancel the batch: it is completed\n",
  ])
})

test("a batch whose time is up ends as expired", async () => {
  held = Promise.withResolvers<void>()
  const batch = await start(decisionLines(300, "slow"), "/v1/decisions", "2s")
  await expect.poll(async () => (await client.batches.retrieve(batch.id)).status).toBe("finalizing")
  held.resolve()
  const done = await ended(batch)
  expect(done.status).toBe("expired")
  const output = await results(done.output_file_id)
  const errors = await results(done.error_file_id)
  expect(errors.length).toBeGreaterThan(0)
  expect(errors.every(({ error }) => error?.code === "batch_expired")).toBe(true)
  expect(new Set([...output, ...errors].map(({ custom_id }) => custom_id)).size).toBe(300)
  await expect(client.batches.cancel(batch.id)).rejects.toMatchObject({ status: 409 })
  await clear()
})

test("two organizations see their own only, and a deleted one leaves nothing", async () => {
  const { id: org_id, secret } = await makeOrganization(server, { name: "Other", owner: "other@example.com" })
  const other = new OpenAI({ apiKey: secret, baseURL: `${server.url}/v1`, maxRetries: 0 })
  const batch = await start(good, "/v1/decisions")
  const done = await ended(batch)
  for (const wrong of [
    () => other.files.retrieve(batch.input_file_id),
    () => other.files.content(batch.input_file_id),
    () => other.files.delete(batch.input_file_id),
    () => other.files.content(done.output_file_id ?? ""),
    () => other.batches.retrieve(batch.id),
    () => other.batches.cancel(batch.id),
    () =>
      other.batches.create({
        input_file_id: batch.input_file_id,
        endpoint: "/v1/embeddings",
        completion_window: "24h",
      }),
  ])
    await expect(wrong()).rejects.toMatchObject({ status: 404 })
  expect([(await other.files.list()).data, (await other.batches.list()).data]).toEqual([[], []])
  await upload(good, other)
  const folder = join(server.dataDirectory, "files", org_id)
  const bytes = (): string[] =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.length > 64)
  expect(bytes()).toHaveLength(1)
  await (await operatorOf(server)).deleteOrganization({ params: { org_id } })
  await expect.poll(bytes).toEqual([])
  expect(await results(done.output_file_id)).toHaveLength(1)
  await clear()
})
