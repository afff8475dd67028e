/** The request log on every engine: filters and pages equal a plain search through the records, also while others come. */
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { usdText } from "../src/base/money.ts"
import type { LogPage, LogQuestion, PagePosition } from "../src/store/events/request-log.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { type TestEvents, engineNames, openTestEvents } from "./analytics-engines.ts"
import { hasTag } from "./analytics-reference.ts"
import { Chance, epochMs, makeRecord, makeTagFilter, organizations, spanMs } from "./analytics-samples.ts"
import { sequenceRecord } from "./sequence-record.ts"

const startMaxMs = 300_000
const eventsCount = 300
const questionsCount = Number(process.env["UMPIRE_TEST_QUESTIONS"] ?? 20)

const chance = new Chance(20261116)
/** Half of them in a few milliseconds, so that pages end among equal times. */
const records = Array.from({ length: eventsCount }, (_, index) => {
  const record = makeRecord(chance, index)
  return index % 2 === 0 ? record : { ...record, timestamp: epochMs + (index % 5) }
})

const unfiltered: LogQuestion = {
  organizationId: "org_a",
  startMs: undefined,
  endMs: undefined,
  nowMs: epochMs + spanMs,
  equals: {},
  latencyMs: { min: undefined, max: undefined },
  cost: { min: undefined, max: undefined },
  questionSetVersion: undefined,
  tags: [],
  verdict: undefined,
  filters: [],
  after: undefined,
  limit: 50,
}

function makeQuestion(): LogQuestion {
  const maybe = <Value>(value: Value): Value | undefined => (chance.below(4) === 0 ? value : undefined)
  const sample = chance.pick(records)
  const startMs = maybe(epochMs + chance.below(spanMs))
  return {
    ...unfiltered,
    organizationId: chance.pick(["org_nobody", ...organizations, ...organizations]),
    startMs,
    endMs: maybe((startMs ?? epochMs) + 1 + chance.below(spanMs)),
    nowMs: epochMs + chance.pick([0, spanMs, -spanMs, 400 * spanMs]),
    equals: Object.fromEntries(
      columns.flatMap((column) => (chance.below(8) === 0 ? [[column, sample[column] ?? ""]] : [])),
    ),
    latencyMs: { min: maybe(chance.pick([5, 10])), max: maybe(chance.pick([5, 10, 2000])) },
    cost: { min: maybe(chance.below(1000)), max: maybe(chance.below(1000)) },
    questionSetVersion: maybe(2),
    tags: Array.from({ length: chance.pick([0, 0, 0, 1, 2]) }, () => makeTagFilter(chance)),
    verdict: maybe(chance.pick(["abstained", "answered"] as const)),
    filters: chance.pick([
      [],
      [],
      [{ dimension: "result", value: "error", excluded: true }],
      [{ dimension: "model", value: chance.pick(modelsOf(sample)), excluded: false }],
      [{ dimension: "model", value: chance.pick(modelsOf(sample)), excluded: true }],
    ]),
    limit: chance.pick([5, 50, 200]),
  }
}

const columns = [
  "api_key_id",
  "principal_id",
  "question_set_id",
  "call_source",
  "result",
  "error_code",
  "region",
  "request_id",
] as const

function isFound(record: SequenceRecord, question: LogQuestion): boolean {
  const { startMs = 0, endMs = Infinity, latencyMs, cost, verdict } = question
  return (
    record.organization_id === question.organizationId &&
    record.timestamp >= startMs &&
    record.timestamp < endMs &&
    columns.every((column) => (question.equals[column] ?? record[column] ?? "") === (record[column] ?? "")) &&
    isWithin(record.gateway_latency_ms, latencyMs) &&
    isWithin(Number(record.cost_ticks), cost) &&
    (question.questionSetVersion ?? record.question_set_version) === record.question_set_version &&
    question.tags.every((tag) => hasTag(record, tag)) &&
    (verdict !== "abstained" || (record.abstained ?? 0) > 0) &&
    (verdict !== "answered" || (record.abstained === 0 && record.result === "success")) &&
    question.filters.every(({ dimension, value, excluded }) =>
      dimension === "model"
        ? modelsOf(record).some((model) => (model === value) !== excluded)
        : record.result !== value,
    )
  )
}

/** All that worked on it. */
const modelsOf = ({ model, stages }: SequenceRecord): string[] =>
  stages?.length ? stages.map((stage) => stage.model) : [model]

function isWithin(value: number, { min, max }: LogQuestion["cost"]): boolean {
  return value >= (min ?? 0) && value <= (max ?? Infinity)
}

const newestFirst = (a: SequenceRecord, b: SequenceRecord): number =>
  b.timestamp - a.timestamp || (a.seq_id < b.seq_id ? 1 : -1)

describe.each(engineNames)("%s", (engine) => {
  let kept: TestEvents

  beforeAll(async () => {
    kept = await openTestEvents(engine)
    await kept.keep(records)
  }, startMaxMs)
  afterAll(() => kept.close())

  const ask = async (question: LogQuestion): Promise<LogPage> => await kept.events.ask("requests", question)

  async function readAll(question: LogQuestion, beforePage?: () => Promise<void>): Promise<string[]> {
    const found: string[] = []
    let after: PagePosition | undefined
    do {
      const page = await ask({ ...question, after })
      expect(page.sequences.length).toBeLessThanOrEqual(question.limit)
      found.push(...page.sequences.map(({ seq_id }) => seq_id))
      after = page.next ?? undefined
      await beforePage?.()
    } while (after)
    return found
  }

  test(
    `equals a plain search on ${questionsCount} random questions`,
    async () => {
      for (let index = 0; index < questionsCount; index++) {
        const question = makeQuestion()
        const expected = records.filter((record) => isFound(record, question)).toSorted(newestFirst)
        expect(await readAll(question), JSON.stringify(question)).toEqual(
          expected.map(({ seq_id }) => seq_id),
        )
      }
    },
    startMaxMs,
  )

  test("a record comes back with everything that was recorded of it", async () => {
    const record = records.find(
      ({ tags, attempts }) => Object.keys(tags ?? {}).length > 1 && attempts?.length,
    )
    if (!record) throw new Error("chance made no such record")
    const lookup = { organizationId: record.organization_id, seqId: record.seq_id }
    const found = await kept.events.ask("request", { ...lookup, startMs: undefined, endMs: undefined })
    const { principal_kind, principal_id, question_set_version, questions, abstained, attempts } = record
    expect(found).toMatchObject({ principal_kind, principal_id, question_set_version, questions, abstained })
    expect(found?.tags).toEqual(record.tags)
    expect(found?.attempts).toEqual(attempts)
    expect(found).toMatchObject({
      queue_ms: record.queue_ms,
      route_ms: record.route_ms,
      engine_ms: record.engine_ms,
      cost: usdText(BigInt(record.cost_ticks)),
    })
  })

  test("a record of version 0.1 has nothing where nothing is known", async () => {
    await kept.keep([sequenceRecord({ seq_id: "seq_old", organization_id: "org_old" })])
    const lookup = { organizationId: "org_old", seqId: "seq_old", startMs: undefined, endMs: undefined }
    expect(await kept.events.ask("request", lookup)).toMatchObject({
      principal_kind: null,
      principal_id: null,
      question_set_id: null,
      question_set_version: null,
      questions: null,
      abstained: null,
      tags: {},
      attempts: [],
      virtual_model: null,
      language: "unknown",
      stages: [],
      queue_ms: null,
      route_ms: null,
      engine_ms: null,
    })
  })

  test("the request of another organization is not found, by its id or by any filter", async () => {
    const foreign = records.find(({ organization_id }) => organization_id === "org_b")
    if (!foreign) throw new Error("chance made no such record")
    const lookup = { organizationId: "org_a", seqId: foreign.seq_id, startMs: undefined, endMs: undefined }
    expect(await kept.events.ask("request", lookup)).toBeNull()
    const found = await readAll({ ...unfiltered, limit: 200 })
    const own = new Set(records.filter((one) => one.organization_id === "org_a").map((one) => one.seq_id))
    expect(found.filter((seqId) => !own.has(seqId))).toEqual([])
  })

  test(
    "pages hold every request once, whatever is recorded between them",
    async () => {
      let made = 0
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 9 }),
          fc.array(fc.integer({ min: -3, max: 8 }), { minLength: 1, maxLength: 12 }),
          async (limit, offsets) => {
            const organization_id = `org_page_${++made}`
            const recordAt = (offset: number): SequenceRecord =>
              sequenceRecord({
                // Ids are not in the order of time, as with gateways whose clocks differ.
                seq_id: `seq_${chance.below(1_000_000)}_${++made}`,
                timestamp: epochMs + offset,
                organization_id,
              })
            const first = Array.from({ length: 25 }, (_, index) => recordAt(index % 6))
            await kept.keep(first)
            const waiting = [...offsets]
            const found = await readAll(
              { ...unfiltered, organizationId: organization_id, limit },
              async () => {
                const offset = waiting.pop()
                if (offset !== undefined) await kept.keep([recordAt(offset)])
              },
            )
            expect(new Set(found).size).toBe(found.length)
            const known = new Set(first.map(({ seq_id }) => seq_id))
            expect(found.filter((seqId) => known.has(seqId))).toEqual(
              first.toSorted(newestFirst).map(({ seq_id }) => seq_id),
            )
          },
        ),
        { numRuns: 6, seed: 22 },
      )
    },
    startMaxMs,
  )
})
