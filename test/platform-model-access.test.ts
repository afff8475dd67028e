/** A model that is not public, from the refusal to the operator's grant, on the real server. */
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"

const run = promisify(execFile)
const root = join(import.meta.dirname, "..")
let folder: string
let server: TestServer

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-access-"))
  const file = readdirSync(join(root, "model")).find((name) => name.endsWith(".gguf")) ?? ""
  const models = [
    { sku: "reserved", file: join(root, "model", file), public: false },
    { sku: "retired", file: join(root, "model", file), enabled: false },
  ]
  const config = join(folder, "umpire.yaml")
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ models }))
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function ask(model: string): Promise<[number, string | undefined]> {
  const questions = [{ type: "predicate", name: "late", instructions: "Did the parcel arrive late?" }]
  const response = await server.post("/v1/decisions", { model, input: "It came two weeks late.", questions })
  const { error } = (await response.json()) as { error?: { code: string } }
  return [response.status, error?.code]
}

async function umpire(...line: string[]): Promise<void> {
  const env = { PATH: process.env["PATH"], UMPIRE_DATA_DIR: server.dataDirectory }
  await run(process.execPath, [join(root, "bin", "umpire.js"), ...line], { env })
}

test("a model that is not public answers 403 until the operator grants it, and again once it is denied", async () => {
  expect(await ask("retired")).toEqual([422, "model_disabled"])
  expect(await ask("reserved")).toEqual([403, "model_access_required"])
  const organizations = await fetch(`${server.url}/v1/organizations`, {
    headers: { authorization: `Bearer ${server.key}` },
  })
  const { data } = (await organizations.json()) as { data: { id: string }[] }
  const asked = await server.post(`/v1/organizations/${data[0]?.id}/model_access_requests`, {
    model_sku: "reserved",
  })
  expect(asked.status).toBe(200)
  expect(await ask("reserved")).toEqual([403, "model_access_required"])
  await umpire("access", "grant", "reserved")
  expect(await ask("reserved")).toEqual([200, undefined])
  await umpire("access", "deny", "reserved")
  expect(await ask("reserved")).toEqual([403, "model_access_required"])
})
