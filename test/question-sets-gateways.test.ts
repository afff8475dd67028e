/** Two gateways on one PostgreSQL answer a question set alike, also what was taught and published at the other. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { type TestServer, startServer } from "./server.ts"

let fresh: FreshDatabase
let here: TestServer
let elsewhere: TestServer
const directories: string[] = []

async function start(): Promise<TestServer> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "umpire-gateways-"))
  directories.push(dataDirectory)
  return await startServer({ dataDirectory, env: { UMPIRE_DATABASE_URL: fresh.url } })
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

async function ask(server: TestServer, model: string): Promise<unknown> {
  const reply = await server.post("/v1/decisions", { model, input: letter, questions: [] })
  const { answers } = (await reply.json()) as { answers: { probability: number }[] }
  return [reply.headers.get("x-umpire-question-set"), answers[0]?.probability.toFixed(4)]
}

test(
  "a set that is made, taught and published at one gateway is the same at the other",
  { timeout: 180_000 },
  async () => {
    const client = createClient(here.url, { authorization: `Bearer ${here.key}` })
    const org_id = (await client.listOrganizations())[0]?.id ?? ""
    const at = { org_id, set_id: "mail" }
    await client.createQuestionSet({
      params: { org_id },
      body: { name: "mail", model: "umpire-decide", questions: [urgent] },
    })
    expect(await ask(elsewhere, "set:mail")).toEqual(await ask(here, "set:mail"))
    const rows = Array.from({ length: 24 }, (_, n) => ({
      input:
        n % 2 === 0 ? `The server number ${n} burns, help now!` : `Thank you for the flowers of day ${n}.`,
      labels: { urgent: n % 2 === 0 },
    }))
    await client.addQuestionSetExamples({ params: at, body: { rows } })
    const job = await client.teachQuestionSet({ params: at, body: {} })
    const other = createClient(elsewhere.url, { authorization: `Bearer ${here.key}` })
    await expect
      .poll(async () => (await other.getQuestionSetJob({ params: { ...at, job_id: job.id } })).state, {
        timeout: 120_000,
      })
      .toBe("succeeded")
    await client.putQuestionSetLabel({ params: { ...at, label: "production" }, body: { version: 2 } })
    const taught = await ask(here, "set:mail")
    expect(taught).toEqual(["mail@2", expect.any(String)])
    // The other gateway is told by the database.
    await expect.poll(async () => await ask(elsewhere, "set:mail")).toEqual(taught)
  },
)
