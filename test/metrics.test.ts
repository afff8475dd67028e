/** Metrics as Prometheus sees them: names and units, the dashboard, the alert rules, and who may read them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { parse } from "yaml"
import { dashboard, panelQueries, queriesWithoutData } from "./dashboard.ts"
import { type TestPrometheus, promtool, startPrometheus } from "./prometheus.ts"
import { type TestServer, startServer } from "./server.ts"
import { installMs } from "./run-folder.ts"

const deploy = join(import.meta.dirname, "..", "deploy")
const rulesFile = join(deploy, "prometheus-rules.yaml")
const token = "metrics-token-of-the-test"

const rules = parse(readFileSync(rulesFile, "utf8")) as {
  groups: { rules: { alert: string; expr: string }[] }[]
}
const ruleQueries = rules.groups.flatMap(({ rules: all }) =>
  all.map(({ alert, expr }): [string, string] => [alert, expr]),
)

const longEvidence = "The parcel left the warehouse on Monday and has not been seen since. ".repeat(40)

let server: TestServer
let prometheus: TestPrometheus

beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_METRICS_TOKEN: token, UMPIRE_LOG_LEVEL: "error" } })
  prometheus = await startPrometheus([{ url: server.url, job: "umpire", token }])
}, installMs)

afterAll(async () => {
  await prometheus.stop()
  await server.stop()
})

/** One of each kind of request that the dashboard has a panel for, and one that is refused. */
async function traffic(): Promise<void> {
  const choices = [{ value: "late" }, { value: "early" }]
  const questions = [{ type: "choice", instructions: "What is it?", choices }]
  const messages = [{ role: "user", content: "Say hello." }]
  const decide = (input: string, model = "umpire-decide"): [string, unknown] => [
    "/v1/decisions",
    { model, input, questions },
  ]
  const requests: [string, unknown][] = [
    decide("The parcel is late."),
    decide(longEvidence),
    decide(longEvidence),
    decide("x", "no-such-model"),
    ["/v1/chat/completions", { model: "umpire-chat", messages, max_completion_tokens: 4 }],
  ]
  const statuses = []
  for (const [path, body] of requests) {
    const response = await server.post(path, body)
    await response.text()
    statuses.push(response.status)
  }
  expect(statuses).toEqual([200, 200, 200, 422, 200])
}

async function readMetrics(authorization?: string): Promise<Response> {
  return await fetch(`${server.url}/metrics`, authorization ? { headers: { authorization } } : {})
}

test("Prometheus' linter finds nothing in the names, units and texts of the metrics", async () => {
  await traffic()
  const response = await readMetrics(`Bearer ${token}`)
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  expect(promtool(["check", "metrics"], await response.text())).toEqual({ status: 0, said: "" })
})

test("Prometheus' linter finds what is wrong", () => {
  const wrong = "# HELP lag_ms Lag.\n# TYPE lag_ms counter\nlag_ms 1\n"
  expect(promtool(["check", "metrics"], wrong)).toMatchObject({ status: 3 })
})

const readText = async (): Promise<string> => await (await readMetrics(`Bearer ${token}`)).text()

test("no value that a request sends becomes a label", async () => {
  await traffic()
  const counted =
    /umpire_request_errors_total\{model="other",call_source="decisions",error_code="unknown_model"\} [1-9]/
  // They are written once a second.
  await expect.poll(readText, { timeout: 5_000 }).toMatch(counted)
  const text = await readText()
  expect(text).not.toContain("no-such-model")
  expect(text).not.toContain("org_")
})

test("the metrics are read with their own bearer value alone, which opens nothing else", async () => {
  expect((await readMetrics()).status).toBe(401)
  expect((await readMetrics(`Bearer ${server.key}`)).status).toBe(401)
  expect((await readMetrics(`Bearer ${token.slice(0, -1)}`)).status).toBe(401)
  expect((await readMetrics(`Bearer ${token}`)).status).toBe(200)
  const headers = { authorization: `Bearer ${token}` }
  expect((await fetch(`${server.url}/v1/models`, { headers })).status).toBe(401)
})

test("metrics can have a port of their own, which has nothing else", async () => {
  const port = /metrics are on a port of their own/
  const other = await startServer({ env: { UMPIRE_METRICS_PORT: "0" } })
  try {
    await expect.poll(() => other.stderr()).toMatch(port)
    const line =
      other
        .stderr()
        .split("\n")
        .find((text) => port.test(text)) ?? "{}"
    const own = `http://127.0.0.1:${(JSON.parse(line) as { port: number }).port}`
    expect((await fetch(`${other.url}/metrics`)).status).toBe(404)
    expect((await fetch(`${own}/v1/models`)).status).toBe(404)
    expect((await fetch(`${own}/metrics`, { method: "POST" })).status).toBe(404)
    expect(await (await fetch(`${own}/metrics`)).text()).toContain("umpire_build_info")
  } finally {
    await other.stop()
  }
})

describe("the files for operators", () => {
  test("Prometheus accepts the alert rules", () => {
    expect(promtool(["check", "rules", rulesFile])).toMatchObject({ status: 0 })
  })

  test("each alert fires past its limit, and none before", () => {
    const folder = mkdtempSync(join(tmpdir(), "umpire-rules-"))
    const file = join(folder, "tests.yaml")
    // A sample a minute.
    const given = (which: "past" | "before"): object => ({
      interval: "1m",
      input_series: Object.values(limits).flatMap((series) =>
        Object.entries(series).map(([name, values]) => ({ series: name, values: values[which] })),
      ),
      promql_expr_test: [
        {
          expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
          eval_time: "20m",
          exp_samples: ruleQueries.flatMap(([alertname]) =>
            which === "past" ? [{ labels: `{alertname="${alertname}"}`, value: 1 }] : [],
          ),
        },
      ],
    })
    expect(Object.keys(limits).toSorted()).toEqual(ruleQueries.map(([alert]) => alert).toSorted())
    const tests = [given("past"), given("before")]
    writeFileSync(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests }))
    const { status, said } = promtool(["test", "rules", file])
    rmSync(folder, { recursive: true })
    expect([status, said]).toEqual([0, expect.stringContaining("SUCCESS")])
  })

  test("dashboard and rules use only metrics that exist", async () => {
    const text = await (await readMetrics(`Bearer ${token}`)).text()
    const known = new Set(["up"])
    for (const [, name = "", type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
      for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""])
        known.add(name + suffix)
    const variables = dashboard.templating.list.map(({ query }) => /\((\w+),/.exec(query)?.[1] ?? "up")
    const used = [...panelQueries, ...ruleQueries].flatMap(([, expression]) => metricsIn(expression))
    expect(used.length).toBeGreaterThan(panelQueries.length)
    expect([...used, ...variables].filter((name) => !known.has(name))).toEqual([])
  })

  test("every query of the dashboard has data while requests of all kinds are served", async () => {
    let empty = panelQueries.map(([, expression]) => expression)
    await expect
      .poll(async () => {
        await traffic()
        empty = await queriesWithoutData(prometheus, empty)
        return empty
      })
      .toEqual([])
  })

  test("Prometheus can evaluate every alert, and none fires for a server that works", async () => {
    // A scrape fails after its second: five seconds ago all are decided. One that was too slow is not looked at.
    let fired: string[] = []
    await expect
      .poll(async () => {
        const at = Date.now() / 1000 - 5
        const isUp = async (): Promise<boolean> => (await prometheus.query("up == 1", at)).length === 1
        const before = await isUp()
        fired = await firing(at)
        // Where Prometheus itself paused, a scrape of that time may have been decided meanwhile.
        return before && (await isUp())
      })
      .toBe(true)
    expect(fired).toEqual([])
  })
})

interface Values {
  readonly past: string
  readonly before: string
}

/** A number for as long as is looked at, and counters that grow by so much a minute, or once. */
const stays = (past: number, before: number): Values => ({ past: `${past}x30`, before: `${before}x30` })
const grows = (past: number, before: number): Values => ({ past: `0+${past}x30`, before: `0+${before}x30` })
const jumps = (past: number, before: number): Values => ({
  past: `0x15 ${past}x15`,
  before: `0x15 ${before}x15`,
})
/** Of a hundred a minute so many are within the bucket that the rule names. */
const within = (metric: string, le: string, labels = ""): Record<string, Values> => ({
  [`${metric}_bucket{le="${le}"${labels}}`]: grows(94, 96),
  [`${metric}_bucket{le="60"${labels}}`]: grows(100, 100),
  [`${metric}_bucket{le="+Inf"${labels}}`]: grows(100, 100),
})
const mebibyte = 1024 * 1024

/** Series of each alert: past what it allows, and just before. */
const limits: Readonly<Record<string, Readonly<Record<string, Values>>>> = {
  UmpireDown: { 'up{job="umpire"}': stays(0, 1) },
  UmpireServerErrors: {
    'umpire_http_requests_total{status="200"}': grows(979, 981),
    'umpire_http_requests_total{status="503"}': grows(21, 19),
  },
  UmpireOverloaded: {
    'umpire_request_errors_total{model="a",error_code="overloaded"}': grows(11, 9),
    'umpire_requests_total{model="a"}': grows(1_000, 1_000),
  },
  UmpireDecisionsSlow: within("umpire_request_duration_seconds", "2.5", ',call_source="decisions"'),
  UmpireFirstTokenSlow: within("umpire_time_to_first_token_seconds", "10"),
  UmpireQueueLong: within("umpire_queue_duration_seconds", "1"),
  UmpireWorkerDown: { 'umpire_worker_healthy{model="a",worker="1"}': stays(0, 1) },
  UmpireModelWithoutWorker: { 'umpire_worker_healthy{model="b",worker="2"}': stays(0, 1) },
  UmpireBreakerOpen: { umpire_worker_breaker_state: stays(2, 1) },
  UmpireEngineRestarts: { umpire_engine_restarts_total: jumps(3, 1) },
  UmpireJournalLag: { umpire_journal_lag_seconds: stays(61, 60) },
  UmpireLeasesNotRenewed: { umpire_lease_renewal_age_seconds: stays(61, 60) },
  UmpireAnalyticsFailing: { umpire_analytics_failing: stays(1, 0) },
  UmpireContentDropped: { umpire_content_dropped_total: jumps(1, 0) },
  UmpireMainThreadBusy: { umpire_event_loop_active_seconds_total: grows(55, 53) },
  UmpireDiskLow: {
    umpire_disk_free_bytes: stays(2 * mebibyte - 1, 2 * mebibyte),
    umpire_disk_reserved_bytes: stays(mebibyte, mebibyte),
  },
  UmpireCreditHeldBySilentGateway: { umpire_silent_gateways_held_dollars: stays(0.01, 0) },
}

const ofSpeed = ["UmpireDecisionsSlow", "UmpireFirstTokenSlow", "UmpireQueueLong", "UmpireMainThreadBusy"]

/** But for how fast a busy machine is. What was refused here was refused on purpose, and nothing else happened. */
async function firing(atSeconds: number): Promise<string[]> {
  const found = []
  for (const [alert, expression] of ruleQueries)
    if ((await prometheus.query(expression, atSeconds)).length > 0) found.push(alert)
  return found.filter((alert) => !ofSpeed.includes(alert))
}

/** The names before a selector or a range; functions stand before a parenthesis. */
function metricsIn(expression: string): string[] {
  return expression.match(/\b(?:umpire|process|up)\w*\b(?=[\s[{)])/g) ?? []
}
