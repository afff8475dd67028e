/** Two gateways on one PostgreSQL: sets, counts of answers and kept content are the same at both. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { openPostgres } from "../src/store/postgres.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type TestServer, startServer } from "./server.ts"
import { bytesUnder } from "./written-files.ts"
import { column, row } from "../src/store/rows.ts"

let fresh: FreshDatabase
let here: TestServer
let elsewhere: TestServer
const directories: string[] = []

async function start(): Promise<TestServer> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-gateways-"))
  directories.push(dataDirectory)
  const env = { UMPIRE_DATABASE_URL: fresh.url, UMPIRE_CONTENT_KEYS: Buffer.alloc(32, 5).toString("base64") }
  return await startServer({ dataDirectory, env })
}

beforeAll(async () => {
  fresh = await freshDatabase()
  here = await start()
  elsewhere = await start()
})
afterAll(async () => {
  await here.stop()
  await elsewhere.stop()
  await fresh.drop()
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

const urgent = { type: "predicate" as const, name: "urgent", instructions: "Is it urgent?" }
const letter = "Answer today, it burns!"

/** Answers of the set, at both gateways. */
let asked = 0

async function ask(server: TestServer, model: string): Promise<unknown> {
  asked++
  const reply = await server.post("/v1/decisions", { model, input: letter, questions: [] })
  const { answers } = (await reply.json()) as { answers: { probability: number }[] }
  return [reply.headers.get("x-umpire-question-set"), answers[0]?.probability.toFixed(4)]
}

test("a set that is made, taught and published at one gateway is the same at the other", async () => {
  const client = createClient(here.url, { authorization: `Bearer ${here.key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  const at = { org_id, set_id: "mail" }
  await client.createQuestionSet({
    params: { org_id },
    body: { name: "mail", model: "umpire-decide", questions: [urgent] },
  })
  expect(await ask(elsewhere, "set:mail")).toEqual(await ask(here, "set:mail"))
  const rows = Array.from({ length: 24 }, (_, n) => ({
    input: n % 2 === 0 ? `The server number ${n} burns, help now!` : `Thank you for the flowers of day ${n}.`,
    labels: { urgent: n % 2 === 0 },
  }))
  await client.addQuestionSetExamples({ params: at, body: { rows } })
  const job = await client.teachQuestionSet({ params: at, body: {} })
  const other = createClient(elsewhere.url, { authorization: `Bearer ${here.key}` })
  await expect
    .poll(async () => (await other.getQuestionSetJob({ params: { ...at, job_id: job.id } })).state, {
      timeout: 60_000,
    })
    .toBe("succeeded")
  await client.putQuestionSetLabel({ params: { ...at, label: "production" }, body: { version: 2 } })
  const taught = await ask(here, "set:mail")
  expect(taught).toEqual(["mail@2", expect.any(String)])
  // The other gateway is told by the database.
  await expect.poll(async () => await ask(elsewhere, "set:mail")).toEqual(taught)
  // Each gateway adds what it has counted every ten seconds.
  const counted = async (): Promise<unknown> => {
    const { questions, versions } = await other.getQuestionSetMonitoring({ params: at, query: {} })
    return [versions, questions.map(({ name, rows, abstained }) => ({ name, rows, abstained }))]
  }
  await expect
    .poll(counted, { interval: 500 })
    .toEqual([[1, 2], [{ name: "urgent", rows: asked, abstained: 0 }]])
})

/** Whether any row of any table, file of a gateway, or line of a log has the text; also as the bytes of a column. */
async function isWritten(marker: string): Promise<boolean> {
  const database = await openPostgres({ url: fresh.url, connectionsMax: 1 })
  const tables = await row({ name: column.text }).all(
    database,
  )`SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'public'`
  expect(tables.length).toBeGreaterThan(20)
  const hex = Buffer.from(marker).toString("hex")
  let found = false
  for (const { name } of tables) {
    const text = `SELECT 1 FROM ${name} t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0 LIMIT 1`
    found ||= (await database.query(text, [marker, hex])).length > 0
  }
  await database.close()
  const logs = [here, elsewhere].map((server) => Buffer.from(server.stdout() + server.stderr()))
  return found || [...directories.flatMap(bytesUnder), ...logs].some((bytes) => bytes.includes(marker))
}

test("evidence is written nowhere where nothing is kept, and in no readable form where it is", async () => {
  const [org] = await createClient(here.url, { authorization: `Bearer ${here.key}` }).listOrganizations()
  const path = `/v1/organizations/${org?.id ?? ""}`
  const decide = async (marker: string): Promise<string> => {
    const input = `Please call ${marker}`
    const reply = await here.post("/v1/decisions", { model: "umpire-decide", input, questions: [urgent] })
    expect(reply.status).toBe(200)
    return reply.headers.get("x-umpire-sequence") ?? ""
  }
  const contentAt = async (server: TestServer, sequence: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${server.key}` }
    const reply = await fetch(`${server.url}${path}/sequences/${sequence}/content`, { headers })
    const { data } = (await reply.json()) as { data?: { evidence: string } }
    return data?.evidence ?? reply.status
  }
  const first = await decide("marker-kept-nowhere-4721")
  expect(await contentAt(here, first)).toBe(404)
  const settings = await fetch(`${here.url}${path}/content_settings`, {
    method: "PUT",
    headers: { authorization: `Bearer ${here.key}`, "content-type": "application/json" },
    body: JSON.stringify({ keep: "evidence_and_answers" }),
  })
  expect(settings.status).toBe(200)
  const second = await decide("marker-encrypted-4722")
  await expect.poll(() => contentAt(here, second)).toBe("Please call marker-encrypted-4722")
  // The other gateway has the same keys.
  expect(await contentAt(elsewhere, second)).toBe("Please call marker-encrypted-4722")
  expect([await isWritten("marker-kept-nowhere-4721"), await isWritten("marker-encrypted-4722")]).toEqual([
    false,
    false,
  ])
  // The search finds what is there.
  expect([await isWritten(first), await isWritten(second)]).toEqual([true, true])
})
