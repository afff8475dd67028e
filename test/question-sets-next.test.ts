/** Which texts to label next: of kept requests, which come first in the review, and of texts that are given. */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import type { NextResult, SetJob, TeachResult } from "../src/contract/question-sets/jobs.ts"
import { type TestServer, startServer } from "./server.ts"

const umpire = join(import.meta.dirname, "..", "bin", "umpire.js")
const folder = mkdtempSync(join(tmpdir(), "umpire-next-"))
const kinds = ["refund my order", "the weather in Lisbon", "the football match"]
const texts = Array.from({ length: 24 }, (_, n) => `About ${kinds[n % 3]}, number ${n}.`)
const refund = {
  type: "predicate" as const,
  name: "refund",
  instructions: "Does the customer want money back?",
}

let server: TestServer
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

beforeAll(async () => {
  server = await startServer({ env: { UMPIRE_CONTENT_KEYS: Buffer.alloc(32, 3).toString("base64") } })
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  at = { org_id, set_id: "mail" }
  const body = { name: "mail", model: "umpire-decide", questions: [refund] }
  await client.createQuestionSet({ params: { org_id }, body })
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

async function ended(started: SetJob): Promise<SetJob> {
  let job = started
  const read = async (): Promise<string> =>
    (job = await client.getQuestionSetJob({ params: { ...at, job_id: started.id } })).state
  await expect.poll(read, { interval: 200 }).not.toMatch(/queued|running/)
  return job
}

const propose = async (body: object): Promise<SetJob> =>
  await ended(await client.proposeQuestionSetLabels({ params: at, body }))

test("without kept requests and texts it is said that there is nothing to choose from", async () => {
  expect((await propose({})).error).toMatch(/no unlabelled request of the set is kept/)
})

test("of texts that are given, those are proposed that have no label, each by its row", async () => {
  const rows = texts.slice(0, 3).map((input, n) => ({ input, labels: { refund: n === 0 } }))
  await client.addQuestionSetExamples({ params: at, body: { rows } })
  const { result, state } = await propose({ texts: [...texts, texts[4]], count: 5 })
  const { rows: picked, ...counts } = result as NextResult
  expect([state, counts]).toEqual(["succeeded", { question: "refund", candidates: 21, labelled: 3 }])
  const places = picked.map(({ row }) => row ?? 0)
  expect(new Set(places).size).toBe(5)
  expect(places.every((row) => row > 3 && row <= 24)).toBe(true)
  expect(picked[0]).toMatchObject({ seq_id: null, answer: expect.stringMatching(/yes|no/) })
  const again = await propose({ texts: [...texts, texts[4]], count: 5 })
  expect((again.result as NextResult).rows.map(({ row }) => row)).toEqual(places)
})

test("kept requests come first in the review, the best foremost, and their labels become examples", async () => {
  await client.putContentSettings({
    params: { org_id: at.org_id },
    body: { keep: "evidence_and_answers" },
  })
  for (const input of texts)
    await server.post("/v1/decisions", { model: "set:mail", input, questions: [{ name: "refund" }] })
  await expect
    .poll(async () => ((await propose({ count: 4 })).result as NextResult | null)?.candidates, {
      timeout: 60_000,
    })
    .toBe(21)
  const { rows } = (await propose({ count: 4 })).result as NextResult
  const queue = async () => (await client.listReviewItems({ params: at, query: { state: "open" } })).data
  const items = await queue()
  expect(items.slice(0, 4).map(({ seq_id, reason }) => [seq_id, reason])).toEqual(
    rows.map(({ seq_id }) => [seq_id, "label_next"]),
  )
  const [first] = items
  await client.decideReviewItem({
    params: { ...at, item_id: first?.id ?? "" },
    body: { decision: "label", label: false },
  })
  expect((await client.getQuestionSet({ params: at })).counts.examples).toBe(4)
  const next = (await propose({ count: 20 })).result as NextResult
  expect(next).toMatchObject({ candidates: 20, labelled: 4 })
  expect(next.rows.map(({ seq_id }) => seq_id)).not.toContain(first?.seq_id)
})

test("a set of several questions needs the name of one", async () => {
  const questions = [refund, { ...refund, name: "other" }]
  await client.updateQuestionSet({ params: at, body: { questions } })
  const start = client.proposeQuestionSetLabels({ params: at, body: {} })
  await expect(start).rejects.toMatchObject({
    code: "invalid_body",
    message: expect.stringMatching(/refund, other/),
  })
  expect((await propose({ question: "other", count: 1 })).state).toBe("succeeded")
  const { data } = await client.listQuestionSetJobs({ params: at })
  expect(data.every(({ kind }) => kind === "next")).toBe(true)
})

test("umpire sets next writes what to label as CSV, and teaching tells the learning curve", async () => {
  writeFileSync(join(folder, "mail.csv"), `text\n${texts.map((text) => `"${text}"`).join("\n")}\n`)
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const args = [
    "sets",
    "next",
    "mail",
    "--question",
    "refund",
    "--from",
    "mail.csv",
    "--count",
    "3",
    "--out",
    "next.csv",
  ]
  const { stdout } = await promisify(execFile)(process.execPath, [umpire, ...args], { env, cwd: folder })
  expect(stdout).toMatch(/3 of 20 texts without a label, beside 4 with one\. Written to next\.csv/)
  const [head, ...lines] = readFileSync(join(folder, "next.csv"), "utf8").trimEnd().split("\n")
  expect(head).toBe('"input","refund"')
  expect(lines.map((line) => texts.includes(line.slice(1, -4)))).toEqual([true, true, true])

  const rows = texts.slice(4).map((input, n) => ({ input, labels: { refund: (n + 1) % 3 === 0 } }))
  await client.addQuestionSetExamples({ params: at, body: { rows, replace: true } })
  const job = await ended(
    await client.teachQuestionSet({ params: at, body: { questions: ["refund"], target_accuracy: 0.9 } }),
  )
  const [taught] = (job.result as TeachResult).questions
  expect(taught?.labels_needed).toMatchObject({ target: 0.9, sentence: expect.any(String) })
  const artefact = await client.getQuestionSetArtefact({ params: { ...at, hash: taught?.artefact ?? "" } })
  expect(artefact.learning.map((point) => point.rows)).toEqual([6, 12, artefact.rows.train])
})
