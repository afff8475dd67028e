/** Regions over HTTP: policy, hint, header, sequence, metrics and status of a real server. */
import { execFile, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"
import { type Upstream, startUpstream } from "./upstream.ts"
import { bytesUnder } from "./written-files.ts"

const run = promisify(execFile)
const command = join(import.meta.dirname, "..", "bin", "umpire.js")
const email = "owner@example.com"
const password = "correct horse battery staple"

const config = {
  gateway: { region: "paris" },
  regions: [
    { id: "paris", country: "FR", latitude: 48.9, longitude: 2.4 },
    { id: "oslo", country: "NO", latitude: 59.9, longitude: 10.8 },
  ],
}
const decision = {
  model: "umpire-decide",
  input: "The parcel is late.",
  questions: [{ type: "predicate", instructions: "Is it late?" }],
}

let folder: string
let server: TestServer
let far: Upstream
let policyUrl: string
let session: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-routing-"))
  far = await startUpstream(() => ({ text: "Hello" }))
  const workers = [{ url: far.url, dialect: "openai" }]
  const models = [{ sku: "far", context_tokens_max: 8192, workers }]
  // JSON is YAML.
  writeFileSync(join(folder, "umpire.yaml"), JSON.stringify({ ...config, models }))
  server = await startServer({
    env: {
      UMPIRE_CONFIG: join(folder, "umpire.yaml"),
      UMPIRE_BOOTSTRAP_EMAIL: email,
      UMPIRE_BOOTSTRAP_PASSWORD: password,
    },
  })
  const signedIn = await fetch(`${server.url}/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email, password }),
  })
  session = ((await signedIn.json()) as { data: { token: string } }).data.token
  const listed = await fetch(`${server.url}/v1/organizations`, {
    headers: { authorization: `Bearer ${session}` },
  })
  const { data } = (await listed.json()) as { data: { id: string }[] }
  policyUrl = `${server.url}/v1/organizations/${data[0]?.id}/routing_policy`
})

afterAll(async () => {
  await server.stop()
  await far.close()
  rmSync(folder, { recursive: true, force: true })
})

async function decide(hint?: string): Promise<{ status: number; region: string | null; error: unknown }> {
  const response = await server.post(
    "/v1/decisions",
    decision,
    hint === undefined ? {} : { "x-umpire-region": hint },
  )
  const { error } = (await response.json()) as { error?: { code: string; type?: string } }
  return { status: response.status, region: response.headers.get("x-umpire-region"), error: error ?? null }
}

async function putPolicy(policy: object): Promise<number> {
  const headers = { authorization: `Bearer ${session}`, "content-type": "application/json" }
  return (await fetch(policyUrl, { method: "PUT", headers, body: JSON.stringify(policy) })).status
}

describe("a decision", () => {
  test("says in which region it ran, and so does its sequence", async () => {
    expect(await decide()).toEqual({ status: 200, region: "paris", error: null })
    const journal = join(server.dataDirectory, "journal")
    expect(bytesUnder(journal).join("")).toContain('"region":"paris"')
  })

  test("runs where its hint says", async () => {
    expect(await decide("paris")).toEqual({ status: 200, region: "paris", error: null })
  })

  test("whose hint names no region is 422", async () => {
    expect(await decide("atlantis")).toMatchObject({ status: 422, error: { code: "unknown_routing_hint" } })
  })

  test("whose hint names a region without the model is 403, from the gateway", async () => {
    const error = { code: "region_denied", type: "permission_error" }
    expect(await decide("oslo")).toMatchObject({ status: 403, region: null, error })
  })

  test("obeys a new routing policy at once", async () => {
    expect(await putPolicy({ mode: "required", regions: ["oslo"] })).toBe(204)
    expect(await decide()).toMatchObject({ status: 403, error: { code: "region_denied" } })
    expect(await putPolicy({ mode: "ordered", regions: ["oslo", "paris"] })).toBe(204)
    expect(await decide()).toMatchObject({ status: 200, region: "paris" })
    expect(await putPolicy({})).toBe(204)
  })
})

test("metrics tell requests and the state of every worker", async () => {
  await decide()
  const response = await fetch(`${server.url}/metrics`)
  expect(response.headers.get("content-type")).toContain("text/plain")
  const text = await response.text()
  expect(text).toMatch(
    /umpire_http_requests_total\{route="\/v1\/decisions",method="POST",status="200"\} [1-9]/,
  )
  expect(text).toContain(
    'umpire_worker_healthy{model="umpire-decide",region="paris",worker="paris/local#0"} 1',
  )
  expect(text).toContain(
    'umpire_worker_breaker_state{model="umpire-decide",region="paris",worker="paris/local#0"} 0',
  )
  for (const name of ["umpire_journal_bytes", "umpire_journal_lag_seconds", "umpire_leases_held_dollars"])
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"))
})

test("umpire status shows regions, workers, leases and journal of the running server", async () => {
  const env = { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory }
  const { stdout } = await run(process.execPath, [command, "status", "--json"], { env })
  expect(JSON.parse(stdout)).toMatchObject({
    state: "serving",
    region: "paris",
    regions: [{ id: "paris" }, { id: "oslo" }],
    leases: [{ held_ticks: expect.stringMatching(/^\d+$/) }],
    journal: { bytes: expect.any(Number), lag_ms: expect.any(Number) },
  })
  const drawn = await run(process.execPath, [command, "status"], { env })
  expect(drawn.stdout).toMatch(/umpire-decide +paris\/local#0 +up +closed/)
})

test("a drained worker gets no requests until it is put back, and a worker nobody has is refused", async () => {
  const env = { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory }
  const umpire = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [command, ...args], { env })).stdout
  const worker = `paris/${new URL(far.url).host}#0`
  const chat = async (): Promise<unknown> => {
    const messages = [{ role: "user", content: "Hello" }]
    return await (await server.post("/v1/chat/completions", { model: "far", messages })).json()
  }
  await umpire("workers", "drain", worker)
  expect(await chat()).toMatchObject({ error: { code: "routing_failed" } })
  expect(far.requests).toEqual([])
  const status = await umpire("status")
  expect(status).toMatch(new RegExp(`far +${worker} +drained`))
  expect(status).toMatch(/^gw_\w+ +paris +\d+\.\d+\.\d+ +serving +http/m)
  await umpire("workers", "undrain", worker)
  expect(await chat()).toMatchObject({ choices: [{ message: { content: "Hello" } }] })
  await expect(umpire("workers", "drain", "atlantis/10.0.1.5#0")).rejects.toThrow(/no gateway has a worker/)
  await expect(umpire("workers", "drain", "paris/local#0")).rejects.toThrow(/stop the gateway instead/)
})

test("umpire status --watch goes on until it is stopped", async () => {
  const env = { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory }
  const child = spawn(process.execPath, [command, "status", "--watch", "--json"], { env })
  let lines = 0
  child.stdout.setEncoding("utf8").on("data", (text: string) => (lines += text.split("\n").length - 1))
  await expect.poll(() => lines).toBeGreaterThanOrEqual(2)
  const ended = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)))
  child.kill("SIGINT")
  expect(await ended).toBe("SIGINT")
})
