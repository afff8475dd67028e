/** A question set whose model is a cascade: taught on all stages, with thresholds that the cascade then uses. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import type { SetJob, TeachResult } from "../src/contract/question-sets/jobs.ts"
import { type TestServer, startServer } from "./server.ts"

/** Of one job, beside all other tests. */
const jobMs = 300_000

/** What only the large model can know of a text: nothing in its words tells. */
const isMarked = (text: string): boolean => Number(/\d+/.exec(text)?.[0] ?? 0) % 8 < 4
const isYes = (text: string): boolean =>
  text.startsWith("Invoice") || (text.startsWith("Memo") && isMarked(text))
let asked = 0
const large = createServer((request, response) => {
  if (request.method === "POST") asked++
  const chunks: Buffer[] = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const { state = "", questions = {} } = (
      request.method === "GET" ? {} : JSON.parse(Buffer.concat(chunks).toString())
    ) as { state?: string; questions?: object }
    const noul = isYes(state) ? 0.95 : 0.05
    const answers = Object.keys(questions).map((name) => [name, { type: "noul", noul }])
    const usage = { input_tokens: 100, output_tokens: 0 }
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ answers: Object.fromEntries(answers) as object, usage }))
  })
})

/** Two of three kinds are learnt from their words. */
const texts = Array.from({ length: 120 }, (_, n) => {
  if (n % 3 === 0) return `Invoice ${n} shows the wrong amount, please refund my money.`
  if (n % 3 === 1) return `The weather in Lisbon on day ${n} is sunny with a light wind from the sea.`
  return `Memo ${n} of the archive.`
})

let folder: string
let server: TestServer
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-cascade-teaching-"))
  await new Promise<void>((resolve) => large.listen(0, "127.0.0.1", resolve))
  // True for a TCP server that listens.
  const url = `http://127.0.0.1:${(large.address() as AddressInfo).port}`
  const config = join(folder, "umpire.yaml")
  const entry = (sku: string) => ({
    sku,
    context_tokens_max: 4096,
    price_m_input_tokens_usd: "10",
    workers: [{ url, dialect: "systemone" }],
  })
  // The rule alone sends nothing on. JSON is YAML.
  const thresholds = { predicate: 0 }
  writeFileSync(
    config,
    JSON.stringify({
      models: [
        entry("large"),
        { sku: "careful", cascade: { models: ["umpire-decide", "large"], thresholds } },
        { sku: "canary", split: ["umpire-decide", "large"].map((model) => ({ model, weight: 1 })) },
      ],
    }),
  )
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  at = { org_id: (await client.listOrganizations())[0]?.id ?? "", set_id: "flagged" }
  await createSet("flagged", "careful")
})

afterAll(async () => {
  await server.stop()
  large.closeAllConnections()
  large.close()
  rmSync(folder, { recursive: true, force: true })
})

async function createSet(name: string, model: string): Promise<void> {
  const question = {
    type: "predicate" as const,
    name: "flag",
    instructions: "Is it about money, or a memo that was flagged?",
    target_accuracy: 0.9,
  }
  const { org_id } = at
  await client.createQuestionSet({ params: { org_id }, body: { name, model, questions: [question] } })
  const rows = texts.map((input) => ({ input, labels: { flag: isYes(input) } }))
  await client.addQuestionSetExamples({ params: { org_id, set_id: name }, body: { rows } })
}

async function teach(set_id: string): Promise<SetJob> {
  const params = { ...at, set_id }
  let job = await client.teachQuestionSet({ params, body: { version: "1" } })
  await expect
    .poll(
      async () => (job = await client.getQuestionSetJob({ params: { ...params, job_id: job.id } })).state,
      { timeout: jobMs },
    )
    .not.toMatch(/queued|running/)
  return job
}

const stagesOf = async (input: string): Promise<string[]> => {
  const response = await server.post("/v1/decisions", { model: "set:flagged", input, questions: [] })
  expect(response.status).toBe(200)
  return (response.headers.get("x-umpire-stages") ?? "").split(", ").map((stage) => stage.split(";")[0] ?? "")
}

const memos = Array.from({ length: 6 }, (_, n) => `Memo ${901 + n} of the archive.`)

test(
  "teaching asks every stage, reports what the cascade will do, and the cascade uses its thresholds",
  { timeout: 2 * jobMs },
  async () => {
    expect(await Promise.all(memos.map(stagesOf))).toEqual(memos.map(() => ["umpire-decide"]))
    const { error, result } = await teach("flagged")
    expect(error).toBeNull()
    const { version, cascade, questions } = result as TeachResult
    expect(version).toBe(2)
    const label = { ...at, set_id: "flagged", label: "production" }
    await client.putQuestionSetLabel({ params: label, body: { version: 2 } })
    expect(cascade?.stages.map(({ model }) => model)).toEqual(["umpire-decide", "large"])
    const [small, dear] = cascade?.stages ?? []
    expect(dear).toMatchObject({ accuracy: 1, cost_usd: "0.001" })
    expect(cascade?.accuracy).toBeGreaterThanOrEqual(small?.accuracy ?? 1)
    expect(cascade?.accuracy_low).toBeLessThan(cascade?.accuracy ?? 0)
    // The learnt kinds stay with the small model.
    expect(dear?.asked).toBeGreaterThan(0)
    expect(dear?.asked).toBeLessThan(0.7)
    expect(Number(cascade?.cost_usd)).toBeLessThan(0.0008)
    expect(cascade?.latency_ms).toBeGreaterThan(0)
    expect(questions[0]?.cascade).toMatchObject({ target: 0.9, asked: [1, dear?.asked] })
    expect(await Promise.all(memos.map(stagesOf))).toContainEqual(["umpire-decide", "large"])
    expect(await Promise.all(texts.slice(0, 6).map(stagesOf))).toContainEqual(["umpire-decide"])
  },
)

const artefactOf = async (version: string): Promise<string | null | undefined> =>
  (await client.getQuestionSetVersion({ params: { ...at, version } })).questions[0]?.artefact

test(
  "the command line shows the cascade, and the same examples teach the same",
  { timeout: 2 * jobMs },
  async () => {
    const env = { PATH: process.env["PATH"], UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
    const bin = join(import.meta.dirname, "..", "bin", "umpire.js")
    const line = [bin, "sets", "teach", "flagged", "--version", "1"]
    const { stdout } = await promisify(execFile)(process.execPath, line, { env })
    expect(stdout).toMatch(/the cascade +\d.*%/)
    expect(stdout).toMatch(/large alone +100% \(at least/)
    expect(stdout).toMatch(/flag +0\.\d{3} /)
    expect(await artefactOf("3")).toBe(await artefactOf("2"))
  },
)

test("frozen cases are checked by the stages that answer live requests", { timeout: 2 * jobMs }, async () => {
  const stages = await Promise.all(memos.map(stagesOf))
  const input = memos[stages.findIndex((models) => models.includes("large"))] ?? ""
  await client.addQuestionSetCases({
    params: at,
    body: { cases: [{ input, expected: { flag: isYes(input) } }] },
  })
  const before = asked
  let job = await client.checkQuestionSet({ params: at, body: { version: "2" } })
  await expect
    .poll(async () => (job = await client.getQuestionSetJob({ params: { ...at, job_id: job.id } })).state, {
      timeout: jobMs,
    })
    .toBe("succeeded")
  expect(job.result).toMatchObject({ cases: 1, passed: 1, failed: 0 })
  expect(asked).toBe(before + 1)
})

test("a set whose model is a split is not taught, and says why", async () => {
  await createSet("split", "canary")
  const { state, error } = await teach("split")
  expect([state, error]).toEqual(["failed", expect.stringContaining("splits requests between models")])
})
