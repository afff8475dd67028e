/** Answers are counted by hour, several gateways add up, and nothing is lost while the store is away. */
import { afterEach, beforeEach, expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { silentLog } from "../../base/log.ts"
import { languageQuestion, sumAnswers } from "../../store/question-sets/answer-counts.ts"
import { insertSet } from "../../store/question-sets/sets.ts"
import { type Database, StoreUnavailable } from "../../store/sql.ts"
import { openTestDatabase } from "../../../test/database.ts"
import { seeder } from "../../../test/platform.ts"
import { createIds } from "../../base/ids.ts"
import { type AskedVersion, compileVersion } from "./version.ts"
import { startAnswerCounter } from "./answer-counter.ts"
import { column, row } from "../../store/rows.ts"

const hourMs = 3_600_000
const startMs = 500_000 * hourMs
const language = "en"
const setId = "qs_00000000000000000000000001"
let database: Database
let clock: ManualClock
let version: AskedVersion

beforeEach(async () => {
  database = await openTestDatabase()
  clock = new ManualClock(startMs + 1)
  const ids = createIds()
  const seed = seeder({ database, ids })
  const organizationId = await seed.organization("Counted", await seed.billingAccount())
  const at = new Date(startMs)
  await insertSet(database, {
    id: setId,
    organizationId,
    name: "counted",
    description: "",
    latest: 1,
    createdBy: null,
    createdAt: at,
    updatedAt: at,
  })
  const question = { type: "predicate", name: "rude", instructions: "Is it rude?" } as const
  const settings = { threshold: null, below: "abstain", target_accuracy: null, calibration: null } as const
  version = compileVersion(
    { setId, setName: "counted", number: 1, hash: "" },
    { model: "open", questions: [{ ...question, ...settings }], calibration: null },
    new Map(),
  )
})

afterEach(async () => await database.close())

const verdict = (value: string | null, confidence: number, name = "rude") => ({
  name,
  isPredicate: true,
  value,
  isAbstention: value === null,
  confidence,
  isTaught: false,
})

const read = async (bucketSeconds: number | null = null, question: string | null = null) =>
  await sumAnswers(
    database,
    { setId, startMs, endMs: startMs + 10 * hourMs, version: null, question },
    bucketSeconds,
    100,
  )

test("answers, abstentions, confidence, latency and cost are counted, by the hour", async () => {
  const counter = startAnswerCounter({ database, clock, log: silentLog })
  const verdicts = [verdict("yes", 1), verdict(null, 0.05, "other")]
  counter.count({ version, verdicts, startedMs: startMs - 9, costTicks: 7n, language })
  clock.advance(hourMs)
  counter.count({
    version,
    verdicts: [verdict("yes", 0.95)],
    startedMs: clock.nowMs() - 5,
    costTicks: 1n,
    language,
  })
  await counter.close()
  expect(await read()).toEqual([
    {
      question: "other",
      abstained: true,
      answer: "",
      bucket: 0,
      rows: 1,
      confidence: 0.05,
      bins: bins(0),
      latencyMs: 10,
      costTicks: 3n,
    },
    {
      question: "rude",
      abstained: false,
      answer: "yes",
      bucket: 0,
      rows: 2,
      confidence: 1.95,
      bins: bins(9, 9),
      latencyMs: 15,
      costTicks: 5n,
    },
  ])
  const hours = (await read(3600)).filter(({ question }) => question === "rude").map(({ bucket }) => bucket)
  expect(hours).toEqual([startMs / hourMs, startMs / hourMs + 1])
})

test("the languages of texts are counted once for a request, beside its questions", async () => {
  const counter = startAnswerCounter({ database, clock, log: silentLog })
  const verdicts = [verdict("yes", 1), verdict("no", 1, "other")]
  for (const found of ["de", "unknown", "de"] as const)
    counter.count({ version, verdicts, startedMs: startMs, costTicks: 0n, language: found })
  await counter.close()
  const texts = (await read(null, languageQuestion)).map(({ answer, rows }) => [answer, rows])
  expect(texts).toEqual([
    ["de", 2],
    ["unknown", 1],
  ])
  expect((await read()).map(({ question, rows }) => [question, rows])).toEqual([
    ["other", 3],
    ["rude", 3],
  ])
})

test("two gateways add up, and counts of a set that is gone are dropped", async () => {
  const gone = { ...version, setId: "qs_gone" }
  for (const gateway of ["one", "two"]) {
    const counter = startAnswerCounter({ database, clock, log: silentLog })
    counter.count({
      version: gone,
      verdicts: [verdict(gateway, 0.5)],
      startedMs: startMs,
      costTicks: 0n,
      language,
    })
    counter.count({ version, verdicts: [verdict("no", 0.55)], startedMs: startMs, costTicks: 0n, language })
    await counter.close()
  }
  expect(await read()).toMatchObject([{ answer: "no", rows: 2, bins: bins(5, 5) }])
  const [all] = await row({ count: column.integer }).all(database)`SELECT count(*)::int AS count
    FROM set_answer_counts`
  // The answer, and the language.
  expect(all?.count).toBe(2)
})

test("while the store is away counts are kept, and written when it is back", async () => {
  let isAway = true
  const flaky: Database = {
    ...database,
    query: async (text, values) => {
      if (isAway) throw new StoreUnavailable("away")
      return await database.query(text, values)
    },
  }
  const counter = startAnswerCounter({ database: flaky, clock, log: silentLog })
  counter.count({ version, verdicts: [verdict("yes", 0.5)], startedMs: startMs, costTicks: 1n, language })
  await counter.flush()
  counter.count({ version, verdicts: [verdict("yes", 0.5)], startedMs: startMs, costTicks: 1n, language })
  isAway = false
  await counter.close()
  expect(await read()).toMatchObject([{ answer: "yes", rows: 2, costTicks: 2n }])
  expect(counter.dropped()).toBe(0)
})

test("questions that a request brings itself are not counted", async () => {
  const counter = startAnswerCounter({ database, clock, log: silentLog })
  const open = { ...version, questions: [] }
  counter.count({
    version: open,
    verdicts: [verdict("yes", 0.5)],
    startedMs: startMs,
    costTicks: 1n,
    language,
  })
  await counter.close()
  expect(await read()).toEqual([])
})

function bins(...filled: number[]): number[] {
  return Array.from({ length: 10 }, (_, bin) => filled.filter((one) => one === bin).length)
}

test("an answer that is half of a surrogate pair does not hold up the others", async () => {
  const counter = startAnswerCounter({ database, clock, log: silentLog })
  const verdicts = [verdict("\ud800", 1), verdict("no", 1)]
  counter.count({ version, verdicts, startedMs: startMs, costTicks: 0n, language })
  await counter.flush()
  expect((await read()).map(({ answer }) => answer)).toEqual(["no", "\ufffd"])
  await counter.close()
})
