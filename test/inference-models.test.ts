/** `umpire models` as an operator runs it, beside the running server, with a file server on loopback. */
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { prepareDirectory } from "./database.ts"
import { writeRandomAdapter } from "../scripts/random-gguf.ts"
import { randomModel } from "./models.ts"
import { type TestServer, startServer } from "./server.ts"

const command = join(import.meta.dirname, "..", "bin", "umpire.js")
const bytes = readFileSync(randomModel("tiny-f16"))
const digest = createHash("sha256").update(bytes).digest("hex")

let server: TestServer
let dataDirectory: string
let files: Server
let address: string
/** The ranges that were asked for; undefined for a whole file. */
const ranges: (string | undefined)[] = []
let breakAfter: number | null = null

beforeAll(async () => {
  files = createServer((request, response) => {
    const path = request.url ?? ""
    if (path.startsWith("/api/models/")) {
      const listing = [
        { path: "README.md" },
        { path: "tiny-Q8_0.gguf", lfs: { oid: "0".repeat(64) } },
        { path: "tiny-F16.gguf", lfs: { oid: digest } },
      ]
      response.end(JSON.stringify(listing))
      return
    }
    const { range } = request.headers
    ranges.push(range)
    const start = Number(/bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0)
    const rest = bytes.subarray(start)
    response.writeHead(start > 0 ? 206 : 200, { "content-length": rest.length })
    if (breakAfter === null) response.end(rest)
    else {
      const cut = breakAfter
      breakAfter = null
      response.write(rest.subarray(0, cut))
      void untilWritten(join(dataDirectory, "models", "resumed.gguf.partial")).then(() => response.destroy())
    }
  })
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve))
  address = `http://127.0.0.1:${(files.address() as AddressInfo).port}`
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-models-"))
  await prepareDirectory(join(dataDirectory, "database"))
  server = await startServer({ dataDirectory })
})
afterAll(async () => {
  await server.stop()
  rmSync(dataDirectory, { recursive: true })
  files.closeAllConnections()
  await new Promise((resolve) => files.close(resolve))
})

async function untilWritten(file: string): Promise<void> {
  await expect.poll(() => statSync(file, { throwIfNoEntry: false })?.size ?? 0).toBeGreaterThan(0)
}

async function umpire(
  ...words: readonly string[]
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [command, "models", ...words], {
    env: { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory, HF_ENDPOINT: address },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve))
  return { status, stdout, stderr }
}

async function chat(model: string): Promise<number> {
  const body = { model, messages: [{ role: "user", content: "x" }], max_tokens: 1 }
  return (await server.post("/v1/chat/completions", body)).status
}

async function listed(): Promise<string[]> {
  const { stdout } = await umpire("list", "--json")
  return (JSON.parse(stdout) as { sku: string }[]).map(({ sku }) => sku)
}

test("a model pulled from Hugging Face is checked and served without a restart", async () => {
  const { status, stderr } = await umpire("pull", "hf:someone/tiny:F16", "--sku", "pulled")
  expect(stderr).toContain("checksum right")
  expect(status).toBe(0)
  expect(await chat("pulled")).toBe(200)
  expect(await listed()).toContain("pulled")
})

test("a download that broke off goes on where it was", async () => {
  ranges.length = 0
  // It breaks when the client has begun to write: what is only in its hands is lost with the connection.
  breakAfter = Math.floor(bytes.length / 2)
  const { status } = await umpire("pull", `${address}/resumed.gguf`, "--sha256", digest, "--sku", "resumed")
  expect(status).toBe(0)
  expect(ranges[0]).toBeUndefined()
  expect(ranges[1]).toMatch(/^bytes=\d+-$/)
  expect(readFileSync(join(server.dataDirectory, "models", "resumed.gguf")).equals(bytes)).toBe(true)
})

test("a part left by an earlier run is gone on with", async () => {
  ranges.length = 0
  mkdirSync(join(server.dataDirectory, "models"), { recursive: true })
  writeFileSync(join(server.dataDirectory, "models", "part.gguf.partial"), bytes.subarray(0, 5000))
  const { status } = await umpire("pull", `${address}/part.gguf`, "--sha256", digest, "--sku", "part")
  expect(status).toBe(0)
  expect(ranges).toEqual(["bytes=5000-"])
})

test("a wrong checksum adds nothing and leaves nothing", async () => {
  const { status, stderr } = await umpire("pull", `${address}/wrong.gguf`, "--sha256", "0".repeat(64))
  expect(status).toBe(1)
  expect(stderr).toContain("SHA-256")
  expect(existsSync(join(server.dataDirectory, "models", "wrong.gguf"))).toBe(false)
  expect(await chat("wrong")).toBe(404)
})

test("a file is added where it stands, once, and only if it is a model", async () => {
  const file = join(server.dataDirectory, "own-model.gguf")
  copyFileSync(randomModel("tiny-f16"), file)
  expect((await umpire("add", file)).status).toBe(0)
  expect(await chat("own-model")).toBe(200)
  expect((await umpire("add", file)).stderr).toContain("a model of this name")
  const text = join(server.dataDirectory, "text.gguf")
  writeFileSync(text, "not a model")
  expect((await umpire("add", text)).stderr).toContain("not a GGUF file")
})

const decided = async (model: string): Promise<number> => {
  const questions = [{ type: "predicate", instructions: "Is she angry?" }]
  const response = await server.post("/v1/decisions", { model, input: "The customer is angry.", questions })
  expect(response.status).toBe(200)
  const { answers } = (await response.json()) as { answers: { probability: number }[] }
  return answers[0]?.probability ?? NaN
}

const written = async (model: string): Promise<string> => {
  const body = { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 8, temperature: 0 }
  const response = await server.post("/v1/chat/completions", body)
  expect(response.status).toBe(200)
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
  return choices[0]?.message.content ?? ""
}

const adapter = (name: string): string => join(server.dataDirectory, `${name}.gguf`)

test("a LoRA adapter changes what a model answers, one of zeros does not, and one that does not fit is refused", async () => {
  const base = randomModel("tiny-f16")
  writeRandomAdapter("tiny-f16", adapter("tuned"))
  writeRandomAdapter("tiny-f16", adapter("zeros"), 0)
  writeRandomAdapter("micro-short", adapter("narrow"))
  expect(await umpire("add", base, "--adapter", adapter("tuned"))).toMatchObject({
    status: 0,
    stdout: "tuned is in the catalog.\n",
  })
  expect((await umpire("add", base, "--adapter", adapter("zeros"))).status).toBe(0)
  const plain = await decided("own-model")
  expect(await decided("zeros")).toBeCloseTo(plain, 6)
  expect(Math.abs((await decided("tuned")) - plain)).toBeGreaterThan(1e-3)
  expect(await written("zeros")).toBe(await written("own-model"))
  expect(await written("tuned")).not.toBe(await written("own-model"))
  for (const [file, why] of [
    [base, "it is not a LoRA adapter"],
    [adapter("narrow"), "its adapter was made for another model: blk.0.ffn_up.weight.lora_a"],
    [adapter("missing"), "Cannot read the adapter file: it does not exist"],
  ] as const)
    expect((await umpire("add", base, "--sku", "wrong", "--adapter", file)).stderr).toContain(why)
})

test("a quantization that does not exist is answered with those there are", async () => {
  expect((await umpire("pull", "hf:someone/tiny:Q2_K")).stderr).toContain("tiny-Q8_0.gguf, tiny-F16.gguf")
})

test("models added while it ran are there after a restart", async () => {
  const added = ["pulled", "own-model", "tuned"]
  expect(await listed()).toEqual(expect.arrayContaining(added))
  await server.stop()
  server = await startServer({ dataDirectory })
  expect(await listed()).toEqual(expect.arrayContaining(added))
  expect(await chat("own-model")).toBe(200)
})
