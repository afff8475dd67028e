/** Regions over HTTP: policy, hint, header, sequence, metrics and status of a real server. */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type TestServer, startServer } from "./server.ts"

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
let policyUrl: string
let session: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-routing-"))
  // JSON is YAML.
  writeFileSync(join(folder, "umpire.yaml"), JSON.stringify(config))
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
    const records = readdirSync(journal)
      .map((name) => readFileSync(join(journal, name), "utf8"))
      .join("")
    expect(records).toContain('"region":"paris"')
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
    'umpire_worker_breaker{model="umpire-decide",region="paris",worker="paris/local#0"} 0',
  )
  for (const name of ["umpire_journal_bytes", "umpire_journal_lag_ms", "umpire_leases_held_ticks"])
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
