/** The request log on a running server: what a request was, cost and took is found by its id, its tags and its filters. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import type { OverviewResponse } from "../src/contract/analytics.ts"
import type { UsageSpend } from "../src/contract/billing.ts"
import type { SequenceDetail } from "../src/contract/sequences.ts"
import { type TestServer, startServer } from "./server.ts"

const command = join(import.meta.dirname, "..", "bin", "umpire.js")
const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
const decision = { model: "umpire-decide", input: "The parcel came two weeks late.", questions: [question] }

let server: TestServer
let organization: string

beforeAll(async () => {
  server = await startServer()
  const { data } = await get<{ data: { id: string }[] }>("/v1/organizations")
  organization = data[0]?.id ?? ""
  // The analytics process gives way to everything else, and may take longer to start than a question waits for it.
  await list()
  for (const tags of ["team=ops,job=1", "team=ops,job=2", "team=a%20b"])
    expect((await server.post("/v1/decisions", decision, { "x-umpire-tags": tags })).status).toBe(200)
  const refused = await server.post(
    "/v1/decisions",
    { ...decision, model: "none" },
    { "x-request-id": "mine-1" },
  )
  expect(refused.status).toBe(422)
  await vi.waitFor(async () => expect((await list()).data).toHaveLength(4), { timeout: 60_000 })
})
afterAll(() => server.stop())

async function fetchPath(path: string): Promise<Response> {
  return await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } })
}

async function get<Body>(path: string): Promise<Body> {
  return (await (await fetchPath(path)).json()) as Body
}

interface Page {
  readonly data: SequenceDetail[]
  readonly next_cursor: string | null
}

const list = async (query = ""): Promise<Page> =>
  await get<Page>(`/v1/organizations/${organization}/sequences?${query}`)

test("a request is listed with its tags, its time, its try and its exact cost", async () => {
  const [sequence] = (await list("tag=job=1")).data
  expect(sequence).toMatchObject({
    call_source: "decisions",
    result: "success",
    principal_kind: "key",
    questions: 1,
    abstained: null,
    question_set_id: null,
    tags: { team: "ops", job: "1" },
    attempts: [{ region: "local", result: "success" }],
    content: "none",
  })
  expect(sequence?.principal_id).toBe(sequence?.api_key_id)
  expect(sequence?.cost).toMatch(/^0\.\d+[1-9]$/)
  const { engine_ms, route_ms, queue_ms, seq_duration_ms = 0 } = sequence ?? {}
  expect(engine_ms).toBeGreaterThan(0)
  expect(route_ms).toBeGreaterThanOrEqual(0)
  expect(queue_ms).toBeGreaterThanOrEqual(0)
  // The parts are measured more finely than the whole, which is in whole milliseconds.
  expect((engine_ms ?? 0) + (route_ms ?? 0) + (queue_ms ?? 0)).toBeLessThanOrEqual(seq_duration_ms + 1)
  const one = await get<{ data: SequenceDetail }>(
    `/v1/organizations/${organization}/sequences/${sequence?.seq_id}`,
  )
  expect(one.data).toEqual(sequence)
})

test("the id of a response leads to its record, and errors are found by their code", async () => {
  const expected = [
    { result: "error", error_code: "unknown_model", engine_ms: null, attempts: [], cost: "0" },
  ]
  expect((await list("request_id=mine-1")).data).toMatchObject(expected)
  expect((await list("error_code=unknown_model")).data).toMatchObject(expected)
  const answered = await server.post("/v1/decisions", decision)
  const found = async (): Promise<string[]> =>
    (await list(`request_id=${answered.headers.get("x-request-id")}`)).data.map(({ seq_id }) => seq_id)
  await expect.poll(found).toEqual([answered.headers.get("x-umpire-sequence")])
})

test("a malformed header of tags is refused with its rule, and the refusal is recorded", async () => {
  const headers = { "x-umpire-tags": "team" }
  const response = await server.post("/v1/decisions", decision, headers)
  expect(response.status).toBe(400)
  expect(await response.text()).toContain("a tag is key=value")
  const seqId = response.headers.get("x-umpire-sequence") ?? ""
  const found = async () => await get(`/v1/organizations/${organization}/sequences/${seqId}`)
  await expect
    .poll(found)
    .toMatchObject({ data: { result: "error", error_code: "invalid_header", tags: {} } })
})

test("pages follow one another to the last, and filters narrow them", async () => {
  const first = await list("limit=1&tag=team")
  expect(first.data).toHaveLength(1)
  const rest = await list(`limit=200&tag=team&cursor=${first.next_cursor}`)
  expect(rest.next_cursor).toBeNull()
  expect([...first.data, ...rest.data].map(({ tags }) => tags["team"])).toEqual(["a b", "ops", "ops"])
  expect((await list("tag=team&tag=job=2")).data).toHaveLength(1)
  expect((await list(`tag=${encodeURIComponent("team=a b")}`)).data).toHaveLength(1)
  expect((await list("result=success&cost_min=1")).data).toHaveLength(0)
  expect((await list("f=!result:success&tag=team")).data).toHaveLength(0)
})

test.each([
  ["limit", "limit=0"],
  ["limit", "limit=201"],
  ["cursor", "cursor=yesterday"],
  ["range_end", "range_start=5&range_end=5"],
  ["latency_ms_max", "latency_ms_min=5&latency_ms_max=4"],
  ["latency_ms_min", "latency_ms_min=-1"],
  ["cost_min", "cost_min=1e3"],
  ["cost_max", "cost_max=0.00000000001"],
  ["tag", "tag=a&tag=b&tag=c&tag=d&tag=e"],
  ["tag.0", "tag=a%20b"],
  ["result", "result=ok"],
  ["verdict", "verdict=maybe"],
  ["question_set_version", "question_set_version=0"],
  ["f.0", "f=tag:a%20b"],
])("a bad %s is refused by its name: %s", async (path, query) => {
  const response = await fetchPath(`/v1/organizations/${organization}/sequences?${query}`)
  expect(response.status).toBe(400)
  const { error } = (await response.json()) as { error: { details: { path: string }[] } }
  expect(error.details.map((detail) => detail.path)).toContain(path)
})

test("a request that is refused for its tags is recorded with the model that it named", async () => {
  const tags = { "x-umpire-tags": "no-value" }
  const chat = { model: "smollm2-135m-instruct", messages: [{ role: "user", content: "Hello" }] }
  expect((await server.post("/v1/decisions", decision, tags)).status).toBe(400)
  expect((await server.post("/v1/chat/completions", chat, tags)).status).toBe(400)
  await expect
    .poll(async () => (await list("error_code=invalid_header&limit=2")).data.map(({ model }) => model))
    .toEqual(["smollm2-135m-instruct", "umpire-decide"])
})

test("a large request that is refused is recorded with the model that it named", async () => {
  const large = { model: "umpire-decide-small", input: "word ".repeat(30_000), questions: [{}] }
  expect((await server.post("/v1/decisions", large)).status).toBe(422)
  await expect
    .poll(async () => (await list("limit=1")).data.map(({ model, error_code }) => [model, error_code]))
    .toEqual([["umpire-decide-small", "invalid_request"]])
})

test("what cannot be found is 404", async () => {
  for (const path of [
    `/v1/organizations/${organization}/sequences/seq_00000000000000000000000000`,
    `/v1/organizations/org_00000000000000000000000000/sequences`,
  ])
    expect((await fetchPath(path)).status).toBe(404)
})

test("analytics and spend are divided by a tag, and spend adds up", async () => {
  const range = `range_start=1&range_end=${Date.now() + 60_000}`
  const { data } = await get<{ data: OverviewResponse }>(
    `/v1/organizations/${organization}/analytics/overview?${range}&group_by=tag:team&metric=requests&f=tag:team`,
  )
  expect(data.breakdown.rows).toEqual([
    { key: "ops", count: 2, value: 2 },
    { key: "a b", count: 1, value: 1 },
  ])
  const { data: organizations } = await get<{ data: { billing_account_id: string }[] }>("/v1/organizations")
  const account = organizations[0]?.billing_account_id ?? ""
  const spend = await get<{ data: UsageSpend }>(`/v1/billing_accounts/${account}/usage_spend?tag=team`)
  const requests = (await list("tag=team=ops")).data
  const cents = requests.reduce((sum, { cost }) => sum + Number(cost) * 100, 0)
  const tags = new Map(spend.data.tags?.map(({ value, total_cents }) => [value, total_cents]))
  expect([...tags.keys()].toSorted()).toEqual(["", "a b", "ops"])
  expect(tags.get("ops")).toBeCloseTo(cents, 9)
  expect(spend.data.buckets.at(-1)?.tag_totals_cents?.["ops"]).toBeCloseTo(cents, 9)
})

test("the command line lists requests by their filters and shows one", async () => {
  const env = { ...process.env, UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const run = promisify(execFile)
  const listed = await run(
    process.execPath,
    [command, "requests", "--tag", "job=2", "--since", "1h", "--json"],
    {
      env,
    },
  )
  const found = JSON.parse(listed.stdout) as SequenceDetail[]
  expect(found.map(({ tags }) => tags)).toEqual([{ team: "ops", job: "2" }])
  const shown = await run(process.execPath, [command, "requests", "show", found[0]?.seq_id ?? ""], { env })
  expect(shown.stdout).toContain('{"team":"ops","job":"2"}')
  const time = new Date(found[0]?.timestamp ?? NaN).toISOString()
  expect(shown.stdout).toMatch(new RegExp(`^timestamp +${time}$`, "m"))
})
