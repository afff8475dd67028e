/** Monitoring of a set's answers over the API: buckets, the answers shown, the reference window, versions and limits. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { ticksPerCent } from "../src/base/money.ts"
import { addAnswerCounts, languageQuestion } from "../src/store/question-sets/answer-counts.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = Date.UTC(2026, 4, 10)

let platform: Platform
let bearer: string
let at: string
let setId: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  const seed = seeder(platform)
  const org = await seed.organization("Monitored", await seed.billingAccount())
  const owner = await seed.user("owner@monitoring.test")
  await seed.member(org, owner, "primary_owner")
  bearer = await seed.session(owner)
  const sets = `/v1/organizations/${org}/question_sets`
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const body = { name: "mail", model: "open", questions: [rude] }
  setId = (await platform.send("POST", sets, { bearer, body })).body.data.id
  at = `${sets}/mail/monitoring`
  await count({ answer: "yes", rows: 300 }, -dayMs)
  await count({ answer: "no", rows: 300 }, -dayMs)
  await count({ answer: "yes", rows: 180, version: 2 }, 0)
  await count({ answer: "no", rows: 10, bin: 4 }, hourMs)
  await count({ answer: "", abstained: true, rows: 10, bin: 0 }, dayMs + hourMs)
  await count({ question: languageQuestion, answer: "en", rows: 600 }, -dayMs)
  await count({ question: languageQuestion, answer: "en", rows: 100 }, 0)
  await count({ question: languageQuestion, answer: "de", rows: 100 }, dayMs)
  for (let option = 0; option < 22; option++)
    await count({ question: "topic", answer: `option ${option}`, rows: 100 - option }, 0)
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

interface Given {
  readonly question?: string
  readonly answer: string
  readonly abstained?: boolean
  readonly rows: number
  readonly version?: number
  readonly bin?: number
}

async function count(given: Given, offsetMs: number): Promise<void> {
  const { question = "rude", answer, abstained = false, rows, version = 1, bin = 9 } = given
  const bins = Array.from({ length: 10 }, (_, place) => (place === bin ? rows : 0))
  const key = { setId, version, question, hourMs: startMs + offsetMs, abstained, answer }
  // Near the upper end of its tenth.
  const confidence = rows * (bin / 10 + 0.09)
  const added = { rows, bins, confidence, latencyMs: 20 * rows, costTicks: ticksPerCent * BigInt(rows) }
  await addAnswerCounts(platform.database, [{ ...key, ...added }])
}

const get = async (query: Record<string, string | number>) => {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  return await platform.send("GET", `${at}?${pairs.join("&")}`, { bearer })
}
const range = { range_start: startMs, range_end: startMs + 2 * dayMs }

test("days have their answers, abstentions, confidence, latency and cost, and the range its drift", async () => {
  const { body } = await get({ ...range, reference_start: startMs - dayMs, reference_end: startMs })
  expect(body.data).toMatchObject({
    range: { start: startMs, end: startMs + 2 * dayMs },
    reference: { start: startMs - dayMs, end: startMs },
    bucket: "day",
    versions: [1, 2],
  })
  const [rude] = body.data.questions
  expect(rude).toMatchObject({
    name: "rude",
    rows: 200,
    abstained: 10,
    latency_ms: 20,
    cost_cents: 200,
    answers: [
      { answer: "yes", rows: 180, reference_rows: 300 },
      { answer: "no", rows: 10, reference_rows: 300 },
    ],
    reference: { rows: 600, abstained: 0, mean_confidence: expect.closeTo(0.99) },
    drift: { rows: 200, reference_rows: 600, verdict: "large" },
  })
  expect(rude.mean_confidence).toBeCloseTo((180 * 0.99 + 10 * 0.49 + 10 * 0.09) / 200)
  expect(rude.confidence_histogram).toEqual([10, 0, 0, 0, 10, 0, 0, 0, 0, 180])
  expect(rude.series).toMatchObject([
    { start: startMs, rows: 190, abstained: 0, answers: [180, 10], cost_cents: 190 },
    { start: startMs + dayMs, rows: 10, abstained: 10, answers: [0, 0], latency_ms: 20 },
  ])
})

test("texts have their languages, by day and against the reference", async () => {
  const { body } = await get({ ...range, reference_start: startMs - dayMs, reference_end: startMs })
  const { languages } = body.data
  expect(languages.languages).toEqual([
    { language: "en", rows: 100, reference_rows: 600 },
    { language: "de", rows: 100, reference_rows: 0 },
  ])
  expect(languages.drift).toMatchObject({ rows: 200, reference_rows: 600, verdict: "large" })
  expect(languages.series).toEqual([
    { start: startMs, rows: [100, 0] },
    { start: startMs + dayMs, rows: [0, 100] },
  ])
  const names = body.data.questions.map(({ name }: { name: string }) => name)
  expect(names).toEqual(["rude", "topic"])
})

test("hours, one version, and a reference that defaults to the time before", async () => {
  const { body } = await get({ ...range, range_end: startMs + 3 * hourMs, bucket: "hour", version: 1 })
  expect(body.data.reference).toEqual({ start: startMs - 3 * hourMs, end: startMs })
  const rude = body.data.questions.find(({ name }: { name: string }) => name === "rude")
  expect(rude.series.map(({ rows }: { rows: number }) => rows)).toEqual([0, 10, 0])
  expect(rude.drift).toMatchObject({ psi: null, verdict: "too_few_rows" })
})

test("the twenty most frequent answers have a place of their own, all others share one", async () => {
  const { body } = await get(range)
  const topic = body.data.questions.find(({ name }: { name: string }) => name === "topic")
  expect(topic.answers).toHaveLength(21)
  expect(topic.answers[0]).toMatchObject({ answer: "option 0", rows: 100 })
  expect(topic.answers[20]).toMatchObject({ answer: null, rows: 80 + 79 })
  expect(topic.series[0].answers[20]).toBe(80 + 79)
})

test.each([
  ["an end before its start", { range_start: startMs, range_end: startMs - hourMs }, 400],
  ["400 buckets", { range_start: startMs, range_end: startMs + 400 * dayMs }, 200],
  ["401 buckets", { range_start: startMs, range_end: startMs + 401 * dayMs }, 400],
  ["a reference that ends before its start", { ...range, reference_start: startMs, reference_end: 1 }, 400],
  ["a time that no date has", { range_start: startMs, range_end: Number.MAX_SAFE_INTEGER }, 400],
  ["a time of 1970", { range_start: 1, range_end: 2 }, 200],
])("%s", async (_, query, status) => {
  expect((await get(query)).status).toBe(status)
})
