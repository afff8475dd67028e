/** Analytics on a running server: what was asked is counted, every bad question is refused with its name. */
import { execFile } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import {
  type GroupedTimeseriesResponse,
  type OverviewResponse,
  type Sequence,
  dimensions,
} from "../src/contract/analytics.ts"
import { oddTexts } from "./analytics-samples.ts"
import { operatorOf } from "./operator.ts"
import { sequenceRecord } from "./sequence-record.ts"
import { type TestServer, startServer } from "./server.ts"

const command = join(import.meta.dirname, "..", "bin", "umpire.js")
const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
const decision = { model: "umpire-decide", input: "The parcel came two weeks late.", questions: [question] }
const hourMs = 3_600_000

let server: TestServer
let organization: string
let startedMs: number

beforeAll(async () => {
  startedMs = Date.now()
  server = await startServer()
  const { data } = await get<{ data: { id: string }[] }>("/v1/organizations")
  organization = data[0]?.id ?? ""
  // Its process gives way to everything else, and on a busy machine takes longer to start than a request waits for it.
  await overview()
  for (let i = 0; i < 3; i++) expect((await server.post("/v1/decisions", decision)).status).toBe(200)
  const headers = { "x-request-id": "it's:mine" }
  const refused = await server.post("/v1/decisions", { ...decision, model: "no-such:model" }, headers)
  expect(refused.status).toBe(422)
})
afterAll(() => server.stop())

async function fetchPath(path: string, key = server.key): Promise<Response> {
  return await fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } })
}

async function get<Body>(path: string): Promise<Body> {
  return (await (await fetchPath(path)).json()) as Body
}

/** The overview's address; a parameter that is undefined is left out. */
function address(given: Record<string, string | string[] | undefined>, org = organization): string {
  const range = { range_start: String(startedMs - hourMs), range_end: String(Date.now() + hourMs) }
  const search = new URLSearchParams()
  const all = { ...range, group_by: "model", metric: "requests", ...given }
  for (const [name, value] of Object.entries(all))
    for (const one of [value ?? []].flat()) search.append(name, one)
  return `/v1/organizations/${org}/analytics/overview?${search.toString()}`
}

async function overview(given: Record<string, string | string[]> = {}): Promise<OverviewResponse> {
  return (await get<{ data: OverviewResponse }>(address(given))).data
}

/** What a command does, without the time that a process takes to start. */
const importEvents = async (file: string) => await (await operatorOf(server)).importEvents({ body: { file } })

async function umpire(...argv: string[]): Promise<{ stdout: string; status: number }> {
  const run = promisify(execFile)(process.execPath, [command, "analytics", ...argv], {
    env: { ...process.env, UMPIRE_DATA_DIR: server.dataDirectory },
  })
  return await run.then(
    ({ stdout }) => ({ stdout, status: 0 }),
    (error: { stdout: string; code: number }) => ({ stdout: error.stdout, status: error.code }),
  )
}

test("what was answered and what was refused is in the overview, each once", async () => {
  // An overview waits only so long for what is being exported.
  await expect.poll(async () => (await overview()).summary.requests).toBeGreaterThanOrEqual(4)
  const { summary, status, breakdown, timeseries, range } = await overview({ buckets: "7" })
  expect(summary).toMatchObject({
    requests: 4,
    errors: 1,
    error_rate: 0.25,
    cached_in_tokens: 0,
    out_tokens: 0,
  })
  expect(summary.in_tokens).toBeGreaterThan(0)
  expect(status.rows).toEqual([
    { key: "success", count: 3 },
    { key: "error", count: 1 },
  ])
  expect(breakdown).toEqual({
    dim: "model",
    metric: "requests",
    rows: [
      { key: "umpire-decide", count: 3, value: 3 },
      { key: "no-such:model", count: 1, value: 1 },
    ],
  })
  expect(timeseries.buckets).toHaveLength(7)
  expect(timeseries.buckets[0]?.t0).toBe(range.start)
  expect(timeseries.buckets.at(-1)?.t1).toBe(range.end)
  expect(timeseries.buckets.reduce((sum, { requests }) => sum + requests, 0)).toBe(4)
})

test("the timeseries view answers only series, and the groups beyond the limit together", async () => {
  const path = address({ view: "timeseries", limit: "1", buckets: "1" })
  const { data } = await get<{ data: GroupedTimeseriesResponse }>(path)
  expect(Object.keys(data).toSorted()).toEqual(["bucket_ms", "buckets", "dim", "metric", "range", "series"])
  expect(data.series).toEqual([
    { key: "umpire-decide", values: [3] },
    { key: null, values: [1] },
  ])
})

test("a value with colons and quotes is found by a filter and excluded by its opposite", async () => {
  expect((await overview({ f: "model:no-such:model" })).summary.requests).toBe(1)
  expect((await overview({ f: "!model:no-such:model" })).summary.requests).toBe(3)
  expect((await overview({ f: ["model:no-such:model", "model:umpire-decide"] })).summary.requests).toBe(4)
  expect((await overview({ f: ["model:no-such:model", "result:success"] })).summary.requests).toBe(0)
  expect((await overview({ f: "error_code:" })).summary.requests).toBe(3)
})

test("text that looks like SQL is a value wherever a parameter takes text", async () => {
  for (const value of oddTexts) {
    const filtered = await fetchPath(address({ f: `client_ua:${value}` }))
    expect(filtered.status, value).toBe(200)
    expect(((await filtered.json()) as { data: OverviewResponse }).data.summary.requests).toBe(0)
    // Nothing here has such a value in any dimension, so that all of it passes when all of them are excluded.
    const excluding = await overview({ f: dimensions.map((dimension) => `!${dimension}:${value}`) })
    expect(excluding.summary.requests, value).toBe(4)
    const including = await overview({ f: dimensions.map((dimension) => `${dimension}:${value}`) })
    expect(including.summary.requests, value).toBe(0)
    const parts = [encodeURIComponent(value), organization]
    for (const path of [
      `/v1/organizations/${organization}/analytics/sequences/${parts[0]}`,
      `/v1/organizations/${parts[0]}/analytics/sequences/seq_1`,
    ])
      expect((await fetchPath(path)).status, path).toBe(404)
  }
  expect((await overview()).summary.requests).toBe(4)
})

const bad: [string, Record<string, string | string[] | undefined>][] = [
  ["range_start", { range_start: undefined }],
  ["range_start", { range_start: "0" }],
  ["range_start", { range_start: "-1" }],
  ["range_start", { range_start: "1.5" }],
  ["range_start", { range_start: "" }],
  ["range_start", { range_start: "1e3" }],
  ["range_start", { range_start: "99999999999999999999" }],
  ["range_start", { range_start: ["1", "2"] }],
  ["range_start", { range_start: "1 OR 1=1" }],
  ["range_end", { range_end: undefined }],
  ["range_end", { range_start: "5", range_end: "5" }],
  ["range_end", { range_start: "5", range_end: "4" }],
  ["range_end", { range_end: "tomorrow" }],
  ["range_end", { range_end: "9007199254740992" }],
  ["range_end", { range_end: "1); DROP TABLE sequences; --" }],
  ["group_by", { group_by: undefined }],
  ["group_by", { group_by: "organization_id" }],
  ["group_by", { group_by: "model; DROP TABLE sequences" }],
  ["metric", { metric: undefined }],
  ["group_by", { group_by: ["model", "result"] }],
  ["metric", { metric: "count" }],
  ["metric", { metric: "requests, count(*)" }],
  ["buckets", { buckets: "" }],
  ["buckets", { buckets: "ten" }],
  ["buckets", { buckets: "2.5" }],
  ["buckets", { buckets: "1 UNION SELECT 1" }],
  ["view", { view: "table" }],
  ["view", { view: "sequences" }],
  ["view", { view: "overview'--" }],
  ["limit", { limit: "0" }],
  ["limit", { limit: "13" }],
  ["limit", { limit: "x" }],
  ["limit", { limit: "5; --" }],
  ["f.0", { f: "model" }],
  ["f.0", { f: "organization_id:x" }],
  ["f.0", { f: "model' OR '1'='1:x" }],
  ["f.1", { f: ["model:x", "!"] }],
]
test.each(bad)("a bad %s is 400 and named: %j", async (name, given) => {
  const response = await fetchPath(address(given))
  expect(response.status).toBe(400)
  const { error } = (await response.json()) as { error: { code: string; details: { path: string }[] } }
  expect(error.code).toBe("invalid_query")
  expect(error.details.map(({ path }) => path)).toEqual([name])
})

test.each([
  ["0", 1],
  ["-4", 1],
  ["1", 1],
  ["1000", 1000],
  ["1001", 1000],
])("%s buckets are clamped to %d", async (buckets, count) => {
  const range = { range_start: "1000", range_end: "1001000" }
  expect((await overview({ ...range, buckets })).timeseries.buckets).toHaveLength(count)
})

test("limit 12 is accepted", async () => {
  expect((await fetchPath(address({ view: "timeseries", limit: "12" }))).status).toBe(200)
})

describe("one sequence", () => {
  let id: string

  beforeAll(async () => {
    // The refused request is the newest; its id is found through an export of everything.
    const file = join(server.dataDirectory, "all.parquet")
    expect((await umpire("export", file)).stdout).toContain("4 events are in")
    const { DuckDBInstance } = await import("@duckdb/node-api")
    const connection = await (await DuckDBInstance.create()).connect()
    const rows = await connection.runAndReadAll(
      "SELECT seq_id FROM read_parquet($file) WHERE result = 'error'",
      { file },
    )
    id = rows.getRowsJS()[0]?.[0] as string // a text column
  })

  const path = (query = "", org = organization): string =>
    `/v1/organizations/${org}/analytics/sequences/${id}${query}`

  test("is found by its id, with nulls for what it lacks", async () => {
    const { data } = await get<{ data: { sequence: Sequence } }>(path())
    expect(data.sequence).toMatchObject({
      seq_id: id,
      model: "no-such:model",
      call_source: "decisions",
      inference_type: "generation",
      result: "error",
      error_code: "unknown_model",
      stop_reason: null,
      tool_calls: [],
      client_ip: "127.0.0.1",
    })
    expect(Object.keys(data.sequence)).not.toContain("organization_id")
    const { timestamp } = data.sequence
    expect((await fetchPath(path(`?range_start=${timestamp}&range_end=${timestamp + 1}`))).status).toBe(200)
    expect((await fetchPath(path(`?range_start=${timestamp + 1}`))).status).toBe(404)
    expect((await fetchPath(path(`?range_end=${timestamp}`))).status).toBe(404)
    expect((await fetchPath(path("?range_start=5&range_end=5"))).status).toBe(400)
  })

  test.each([
    ["range_start", "?range_start=0"],
    ["range_start", "?range_start=1%20OR%201=1"],
    ["range_end", "?range_end=-1"],
    ["range_end", "?range_end=soon"],
    ["range_end", "?range_start=6&range_end=5"],
  ])("a bad %s is 400 and named: %s", async (name, query) => {
    const response = await fetchPath(path(query))
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: { details: { path: string }[] } }
    expect(error.details.map((detail) => detail.path)).toEqual([name])
  })

  test("an unknown id is 404", async () => {
    expect((await fetchPath(`${path()}x`)).status).toBe(404)
  })
})

test("an organization's events are not in another's answers", async () => {
  const lines = ["org_x", "org_y"].map((org, index) =>
    JSON.stringify(
      sequenceRecord({ seq_id: `seq_${org}`, organization_id: org, timestamp: startedMs + index }),
    ),
  )
  const file = join(server.dataDirectory, "foreign.jsonl")
  await writeFile(file, `${lines.join("\n")}\n`)
  expect((await umpire("import", file)).stdout).toBe("2 events are imported.\n")
  // Once more: what is there is not counted twice.
  await importEvents(file)
  expect(await (await operatorOf(server)).getEventHoldings()).toMatchObject({ events: 6 })
  expect((await overview()).summary.requests).toBe(4)
  expect((await fetchPath(`/v1/organizations/${organization}/analytics/sequences/seq_org_x`)).status).toBe(
    404,
  )
  expect((await fetchPath(address({}, "org_x"))).status).toBe(404)
})

test("the events agree with the ledger, and a difference is named", async () => {
  const from = new Date(startedMs - hourMs).toISOString()
  const file = join(server.dataDirectory, "charged.jsonl")
  const { differences } = await (await operatorOf(server)).verifyEvents({ query: { from } })
  // The imported events of others were not charged here.
  expect([...new Set(differences.map((one) => one.organization_id))].toSorted()).toEqual(["org_x", "org_y"])
  const extra = sequenceRecord({ seq_id: "seq_extra", organization_id: organization, timestamp: startedMs })
  await writeFile(file, JSON.stringify({ ...extra, billing_account_id: "ba_nobody" }))
  await importEvents(file)
  const { stdout, status } = await umpire("verify", "--from", from)
  expect(status).toBe(1)
  expect(stdout).toContain(organization)
})

test("a file that is not events is refused with its line, and pruning removes what is old", async () => {
  const file = join(server.dataDirectory, "bad.jsonl")
  await writeFile(
    file,
    `${JSON.stringify(sequenceRecord({ seq_id: "seq_old", timestamp: 1 }))}\n{"seq_id": 5}\n`,
  )
  await expect(importEvents(file)).rejects.toThrow("line 2: ")
  await writeFile(file, JSON.stringify(sequenceRecord({ seq_id: "seq_old", timestamp: 1 })))
  await importEvents(file)
  expect(await (await operatorOf(server)).pruneEvents({ body: {} })).toMatchObject({ pruned: 1 })
  expect((await overview()).summary.requests).toBeGreaterThan(0)
})

/** When it is exported: a question waits only so long for that. */
async function sequenceOf(id: string): Promise<Sequence> {
  const path = `/v1/organizations/${organization}/analytics/sequences/${id}`
  await expect.poll(async () => (await fetchPath(path)).status).toBe(200)
  return (await get<{ data: { sequence: Sequence } }>(path)).data.sequence
}

const chat = { model: "smollm2-135m-instruct", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] }
const noul = { type: "noul", instructions: "Is the parcel late?" }

test.each([
  ["a decision", "/v1/decisions", decision, {}, 200, "decisions"],
  [
    "System One",
    "/v1/systemone",
    { model: "umpire-decide", state: "Late.", questions: { late: noul } },
    {},
    200,
    "systemone",
  ],
  ["a chat", "/v1/chat/completions", chat, {}, 200, "chat_completions"],
  ["a streamed chat", "/v1/chat/completions", { ...chat, stream: true }, {}, 200, "chat_completions"],
  [
    "a response",
    "/v1/responses",
    { model: "smollm2-135m-instruct", input: "Hello", max_output_tokens: 1 },
    {},
    200,
    "responses",
  ],
  ["what the handler refuses", "/v1/decisions", { ...decision, model: "nobody" }, {}, 422, "decisions"],
  [
    "what is refused before the handler",
    "/v1/chat/completions",
    "hello",
    { "content-type": "text/plain" },
    400,
    "chat_completions",
  ],
])("%s names its sequence in a header", async (_, path, body, headers, status, callSource) => {
  const response = await server.post(path, body, headers)
  await response.text()
  expect(response.status).toBe(status)
  const id = response.headers.get("x-umpire-sequence") ?? ""
  expect(id).toMatch(/^seq_/)
  expect(await sequenceOf(id)).toMatchObject({
    seq_id: id,
    call_source: callSource,
    result: status === 200 ? "success" : "error",
    request_id: response.headers.get("x-request-id"),
  })
})

test.each<[string, string, unknown]>([
  ["of no known model", "/v1/decisions", { ...decision, model: "sent" }],
  ["with a bad question", "/v1/decisions", { ...decision, model: "sent", questions: [{}] }],
  ["with a bad parameter", "/v1/chat/completions", { ...chat, model: "sent", temperature: "hot" }],
  ["that is no JSON", "/v1/systemone", '{"model":"sent",'],
])("a refused request %s keeps the model that it sent", async (_, path, body) => {
  const response = await server.post(path, body)
  expect(response.status).toBeGreaterThanOrEqual(400)
  const id = response.headers.get("x-umpire-sequence") ?? ""
  expect(await sequenceOf(id)).toMatchObject({ model: "sent", result: "error" })
})

test("a request of nobody, and one that is not inference, name no sequence", async () => {
  const nobody = await server.post("/v1/decisions", decision, { authorization: "Bearer ump_wrong" })
  expect([nobody.status, nobody.headers.get("x-umpire-sequence")]).toEqual([401, null])
  expect((await fetchPath("/v1/organizations")).headers.get("x-umpire-sequence")).toBeNull()
})

describe("without an engine", () => {
  let bare: TestServer

  beforeAll(async () => {
    bare = await startServer({ env: { UMPIRE_ANALYTICS_EMBEDDED: "off" } })
  })
  afterAll(() => bare.stop())

  test("analytics is 503 and decisions are answered", async () => {
    expect((await bare.post("/v1/decisions", decision)).status).toBe(200)
    const headers = { authorization: `Bearer ${bare.key}` }
    const organizations = await fetch(`${bare.url}/v1/organizations`, { headers })
    const { data } = (await organizations.json()) as { data: { id: string }[] }
    for (const path of [
      address({}, data[0]?.id),
      `/v1/organizations/${data[0]?.id}/analytics/sequences/seq_1`,
    ]) {
      const response = await fetch(bare.url + path, { headers })
      expect(response.status).toBe(503)
      const { error } = (await response.json()) as { error: { code: string } }
      expect(error.code).toBe("analytics_not_configured")
    }
  })
})
