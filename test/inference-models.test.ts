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
  writeFileSync,
} from "node:fs"
import { type Server, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { prepareDirectory } from "./database.ts"
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
      response.write(rest.subarray(0, cut), () => response.destroy())
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
  // So much that a client has begun to write when it breaks: what is only in its hands is lost with the connection.
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
  expect(await chat("wrong")).toBe(422)
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

test("a quantization that does not exist is answered with those there are", async () => {
  expect((await umpire("pull", "hf:someone/tiny:Q2_K")).stderr).toContain("tiny-Q8_0.gguf, tiny-F16.gguf")
})

test("models added while it ran are there after a restart", async () => {
  const added = ["pulled", "own-model"]
  expect(await listed()).toEqual(expect.arrayContaining(added))
  await server.stop()
  server = await startServer({ dataDirectory })
  expect(await listed()).toEqual(expect.arrayContaining(added))
  expect(await chat("own-model")).toBe(200)
})
