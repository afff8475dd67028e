/** The default model becomes another: taught sets are answered by the one they were taught on until one command teaches them again. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import type { TeachResult } from "../src/contract/question-sets/jobs.ts"
import type { QuestionSetDecision } from "../src/contract/question-sets/sets.ts"
import { prepareDirectory } from "./database.ts"
import { type TestServer, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const base = { UMPIRE_ENGINE_DECISION_MODEL: "umpire-decide" }

let server: TestServer
let dataDirectory: string
let client: ReturnType<typeof createClient>
let params: { org_id: string }

const start = async (env: Record<string, string> = {}): Promise<void> => {
  server = await startServer({ dataDirectory, env })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
}

beforeAll(async () => {
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-model-change-"))
  await prepareDirectory(join(dataDirectory, "database"))
  await start()
  params = { org_id: (await client.listOrganizations())[0]?.id ?? "" }
  const questions = [{ type: "predicate" as const, name: "refund", instructions: "Does it fit the code R4?" }]
  const rows = Array.from({ length: 20 }, (_, n) => ({
    input: n % 2 === 0 ? `Refund order ${n}, please.` : `Thanks for order ${n}.`,
    labels: { refund: n % 2 === 0 },
  }))
  for (const name of ["taught", "untaught"]) {
    await client.createQuestionSet({ params, body: { name, model: "umpire-decide", questions } })
    await client.addQuestionSetExamples({ params: { ...params, set_id: name }, body: { rows } })
  }
})
afterAll(async () => {
  await server.stop()
  rmSync(dataDirectory, { recursive: true, force: true })
})

async function teachAll(): Promise<{ taught: { set: string; result: TeachResult }[]; failed: unknown[] }> {
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const args = [umpire, "sets", "teach", "--all", "--json"]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  return JSON.parse(stdout) as Awaited<ReturnType<typeof teachAll>>
}

const decide = async (version: string): Promise<QuestionSetDecision["answers"][number] | undefined> => {
  const body = { input: "I want my money back for order 7.", version }
  return (await client.decideQuestionSet({ params: { ...params, set_id: "taught" }, body })).answers[0]
}

const outdated = async (): Promise<string[]> =>
  (await client.listQuestionSets({ params })).data.filter((set) => set.outdated).map(({ name }) => name)

/** The hash of what a version was taught, and the model that it was taught on. */
async function taughtIn(version: string): Promise<{ hash: string; model: string }> {
  const at = { ...params, set_id: "taught" }
  const { questions } = await client.getQuestionSetVersion({ params: { ...at, version } })
  const hash = questions[0]?.artefact ?? ""
  return { hash, model: (await client.getQuestionSetArtefact({ params: { ...at, hash } })).model_version }
}

test("a set answers with the model it was taught on until one command teaches it again", async () => {
  const at = { ...params, set_id: "taught" }
  const job = await client.teachQuestionSet({ params: at, body: {} })
  await expect
    .poll(async () => (await client.getQuestionSetJob({ params: { ...at, job_id: job.id } })).state, {
      timeout: 60_000,
    })
    .toBe("succeeded")
  const before = await decide("2")
  expect(before?.taught).toBe(true)
  expect(await outdated()).toEqual([])
  expect((await teachAll()).taught).toEqual([])

  await server.stop()
  await start(base)
  expect(await outdated()).toEqual(["taught"])
  expect(await decide("2")).toEqual(before)
  // What was not taught is answered by today's model.
  expect((await decide("1"))?.answer).not.toEqual(before?.answer)

  const again = await teachAll()
  expect(again.failed).toEqual([])
  expect(again.taught).toMatchObject([{ set: "taught", result: { version: 3 } }])
  expect(await outdated()).toEqual([])
  expect((await taughtIn("3")).model).not.toBe((await taughtIn("2")).model)
  expect((await decide("3"))?.taught).toBe(true)
  expect(await decide("2")).toEqual(before)
})

test("the same examples teach the same bits after the model has come back", async () => {
  await server.stop()
  await start()
  expect(await outdated()).toEqual(["taught"])
  expect((await teachAll()).taught).toMatchObject([{ set: "taught", result: { version: 4 } }])
  expect(await taughtIn("4")).toEqual(await taughtIn("2"))
})
