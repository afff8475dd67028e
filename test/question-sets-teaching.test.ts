/** A set learns from labelled rows: taught, checked, compared, cancelled, and still taught after a restart. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { createClient } from "../src/contract/client.ts"
import type { CheckResult, CompareResult, SetJob, TeachResult } from "../src/contract/question-sets/jobs.ts"
import { prepareDirectory } from "./database.ts"
import { type TestServer, startServer } from "./server.ts"

let server: TestServer
let dataDirectory: string
let client: ReturnType<typeof createClient>
let at: { org_id: string; set_id: string }

/** A question whose words say nothing about the answer: only the examples do. */
const colour = {
  type: "choice" as const,
  name: "colour",
  instructions: "Which code fits?",
  choices: [{ value: "A7" }, { value: "B2" }, { value: "C9" }],
}
const urgent = {
  type: "predicate" as const,
  name: "urgent",
  instructions: "Is it urgent?",
  target_accuracy: 0.8,
}
const topics: readonly [string, (n: number) => string][] = [
  ["A7", (n) => `The weather in Lisbon on day ${n} is sunny with a light wind from the sea.`],
  ["B2", (n) => `Invoice number ${n} shows the wrong amount, please refund my money.`],
  ["C9", (n) => `The football team won match ${n} after a late goal in the stadium.`],
]
const rows = Array.from({ length: 90 }, (_, n) => {
  const [code, write] = topics[n % 3] ?? ["A7", String]
  return { input: write(n), labels: { colour: code, urgent: code === "B2" } }
})

const connect = (): void => {
  client = createClient(server.url, { authorization: `Bearer ${server.key}` })
}

beforeAll(async () => {
  dataDirectory = mkdtempSync(join(tmpdir(), "umpire-teach-"))
  await prepareDirectory(join(dataDirectory, "database"))
  server = await startServer({ dataDirectory })
  connect()
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  at = { org_id, set_id: "codes" }
  await client.createQuestionSet({
    params: { org_id },
    body: { name: "codes", model: "umpire-decide", questions: [colour, urgent] },
  })
  await client.addQuestionSetExamples({ params: at, body: { rows } })
})
afterAll(async () => {
  await server.stop()
  rmSync(dataDirectory, { recursive: true, force: true })
})

/** Of one job, beside all other tests. */
const teachMs = 300_000

async function ended(started: SetJob): Promise<SetJob> {
  let job = started
  await expect
    .poll(
      async () => (job = await client.getQuestionSetJob({ params: { ...at, job_id: started.id } })).state,
      { interval: 200, timeout: teachMs },
    )
    .not.toMatch(/queued|running/)
  return job
}

const decide = async (model: string, input: string): Promise<{ choice: string; probability: number }> => {
  const reply = await server.post("/v1/decisions", { model, input, questions: [{ name: "colour" }] })
  const { answers } = (await reply.json()) as {
    answers: { choice: string; probabilities: { probability: number }[] }[]
  }
  const [answer] = answers
  return { choice: answer?.choice ?? "", probability: answer?.probabilities[0]?.probability ?? NaN }
}

test("teaching makes a version that answers what the examples show", { timeout: 2 * teachMs }, async () => {
  const job = await ended(await client.teachQuestionSet({ params: at, body: {} }))
  expect(job.error).toBeNull()
  const { version, questions } = job.result as TeachResult
  expect([job.state, job.progress, version]).toEqual(["succeeded", 1, 2])
  const [taught, predicate] = questions
  expect(taught).toMatchObject({ name: "colour", reason: null })
  expect(taught?.accuracy_after).toBeGreaterThan(0.9)
  expect(predicate?.promise).toMatchObject({ target: 0.8, promised: true })
  expect(predicate?.threshold).toBe(predicate?.promise?.threshold)
  const fresh = [
    "Rain and wind over Porto tomorrow.",
    "Please refund the wrong amount of my bill.",
    "A goal in the last minute won the match.",
  ]
  const answers = await Promise.all(fresh.map(async (input) => (await decide("set:codes@2", input)).choice))
  expect(answers).toEqual(["A7", "B2", "C9"])

  const content = await client.getQuestionSetVersion({ params: { ...at, version: "2" } })
  expect(content.note).toBe("taught from version 1")
  const artefact = await client.getQuestionSetArtefact({ params: { ...at, hash: taught?.artefact ?? "" } })
  expect(artefact).toMatchObject({ question: "colour", rows: { train: expect.any(Number) } })
  expect(artefact.rows.train + artefact.rows.held_out).toBe(90)
  expect(artefact.baselines.majority).toBeCloseTo(1 / 3, 1)
  expect(artefact.curve.length).toBeGreaterThan(0)
})

test("what was taught stays with a question that is unchanged, and goes with one that is not", async () => {
  const { questions } = await client.getQuestionSetVersion({ params: { ...at, version: "2" } })
  const kept = { ...colour, threshold: 0.5 }
  const changed = { ...urgent, instructions: "Must it be answered today?" }
  const { questions: after, latest_version } = await client.updateQuestionSet({
    params: at,
    body: { questions: questions.map((one) => ({ ...one, artefact: one.artefact ?? null })) },
  })
  expect(after.map(({ artefact }) => artefact)).toEqual(questions.map(({ artefact }) => artefact))
  const next = await client.updateQuestionSet({ params: at, body: { questions: [kept, changed] } })
  expect(next.latest_version).toBe(latest_version + 1)
  expect(next.questions.map(({ artefact }) => artefact === null)).toEqual([false, true])
})

test("every text is recorded as a request of its own and charged", async () => {
  const end = Date.now() + 60_000
  await expect
    .poll(async () => {
      const query = new URLSearchParams({
        range_start: String(end - 3_600_000),
        range_end: String(end),
        group_by: "call_source",
        metric: "requests",
      })
      const reply = await fetch(
        `${server.url}/v1/organizations/${at.org_id}/analytics/overview?${query.toString()}`,
        {
          headers: { authorization: `Bearer ${server.key}` },
        },
      )
      return await reply.text()
    })
    .toContain("teach")
})

test("frozen cases are checked, and publishing checks them too", { timeout: 2 * teachMs }, async () => {
  const cases = [
    { input: "Sun and clouds over Lisbon.", expected: { colour: "A7" } },
    { input: "Refund the invoice, please.", expected: { colour: "C9" } },
  ]
  await client.addQuestionSetCases({ params: at, body: { cases } })
  const body = { version: "2", against: "1" }
  const job = await ended(await client.checkQuestionSet({ params: at, body }))
  const result = job.result as CheckResult
  expect(result).toMatchObject({ version: 2, against: 1, cases: 2, passed: 1, failed: 1, abstained: 0 })
  expect(result.failures[0]).toMatchObject({ question: "colour", expected: "C9", verdict: "B2" })
  expect(result.difference?.questions.map(({ name }) => name)).toEqual(["colour", "urgent"])
  const label = { ...at, label: "production" }
  const published = await client.putQuestionSetLabel({ params: label, body: { version: 2 } })
  expect(published.last_check?.job_id).not.toBe(job.id)
  const checked = await ended({ ...job, id: published.last_check?.job_id ?? "" })
  // Against the version that was published with the set.
  expect(checked.result).toMatchObject({ version: 2, against: 1, failed: 1 })
})

test("two versions are compared over cases and examples", { timeout: 2 * teachMs }, async () => {
  const job = await ended(await client.runQuestionSetComparison({ params: at, body: { from: "1", to: "2" } }))
  const { texts, questions, flips } = job.result as CompareResult
  expect(texts).toBe(92)
  const [first] = questions
  // Every example was taught with: what version 2 says of them is no measurement.
  expect(first?.learnt).toBeGreaterThan(80)
  expect((first?.labelled ?? 0) + (first?.learnt ?? 0)).toBeLessThanOrEqual(92)
  expect(first?.right_after).toBeLessThanOrEqual(first?.labelled ?? 0)
  expect(first?.flips).toBeGreaterThan(0)
  expect(flips.length).toBeLessThanOrEqual(100)
})

test("a job that waits or runs is cancelled", { timeout: 2 * teachMs }, async () => {
  // Texts that were not read before, and longer and more of them than are read before it is told to stop, even if we pause.
  const words = "and so on ".repeat(80)
  const more = Array.from({ length: 900 }, (_, n) => ({
    input: `Text ${n} ${words}`,
    labels: { colour: "A7" },
  }))
  await client.addQuestionSetExamples({ params: at, body: { rows: more } })
  const first = await client.teachQuestionSet({ params: at, body: {} })
  const second = await client.teachQuestionSet({ params: at, body: {} })
  const params = (job: SetJob) => ({ ...at, job_id: job.id })
  expect((await client.cancelQuestionSetJob({ params: params(second) })).state).toBe("cancelled")
  await client.cancelQuestionSetJob({ params: params(first) })
  expect((await ended(first)).state).toBe("cancelled")
  const latest = (await client.getQuestionSet({ params: at })).latest_version
  expect((await client.listQuestionSetVersions({ params: at })).data[0]?.version).toBe(latest)
})

test(
  "a set is taught after a restart, and a job that the restart interrupted goes on",
  { timeout: 2 * teachMs },
  async () => {
    const before = await decide("set:codes@2", "Rain over Porto.")
    const started = await client.teachQuestionSet({ params: at, body: { questions: ["urgent"] } })
    await server.stop()
    server = await startServer({ dataDirectory })
    connect()
    expect(await decide("set:codes@2", "Rain over Porto.")).toEqual(before)
    expect((await ended(started)).state).toBe("succeeded")
  },
)

test("what cannot be taught is said", async () => {
  const one = { ...at, set_id: "few" }
  await client.createQuestionSet({
    params: { org_id: at.org_id },
    body: { name: "few", model: "umpire-decide", questions: [colour] },
  })
  await expect(client.teachQuestionSet({ params: one, body: {} })).rejects.toMatchObject({ code: "conflict" })
  await client.addQuestionSetExamples({
    params: one,
    body: { rows: [{ input: "x", labels: { colour: "A7" } }] },
  })
  const started = await client.teachQuestionSet({ params: one, body: {} })
  await expect
    .poll(async () => (await client.getQuestionSetJob({ params: { ...one, job_id: started.id } })).result)
    .toMatchObject({
      version: null,
      questions: [{ name: "colour", artefact: null, reason: expect.stringMatching(/at least 2/) }],
    })
})
