/** Holds every engine to the reference: the same random events, the same random questions, equal numbers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { type TestEvents, engineNames, openTestEvents } from "./analytics-engines.ts"
import { referenceOverview, referenceTimeseries } from "./analytics-reference.ts"
import {
  Chance,
  epochMs,
  makeQuestion,
  makeRecord,
  namedQuestions,
  oddTexts,
  spanMs,
} from "./analytics-samples.ts"

const startMaxMs = 300_000
const answerMaxMs = 1_800_000

interface Size {
  readonly events: number
  readonly questions: number
}

export function equalitySuite({ events: eventsCount, questions: questionsCount }: Size): void {
  const chance = new Chance(20260115)
  const records = makeRecords(chance, eventsCount)

  describe.each(engineNames)("%s", (engine) => {
    let kept: TestEvents

    beforeAll(async () => {
      kept = await openTestEvents(engine)
      await kept.keep(records.slice(0, eventsCount / 2))
      // Overlaps the first half: what comes twice counts once.
      await kept.keep(records.slice(eventsCount / 4))
    }, startMaxMs)
    afterAll(() => kept.close())

    test(
      `equals the reference on ${questionsCount} random questions`,
      async () => {
        const questions = Array.from({ length: questionsCount }, () => makeQuestion(chance))
        for (const [index, question] of questions.entries()) {
          const overview = await kept.events.ask("overview", question)
          expect(overview, JSON.stringify(question)).toEqual(referenceOverview(records, question))
          const series = await kept.events.ask("timeseries", question)
          expect(series, `${index} ${JSON.stringify(question)}`).toEqual(
            referenceTimeseries(records, question),
          )
        }
      },
      answerMaxMs,
    )

    test(
      "equals the reference in every case that is easily got wrong",
      async () => {
        for (const [name, question] of namedQuestions()) {
          const overview = await kept.events.ask("overview", question)
          expect(overview, name).toEqual(referenceOverview(records, question))
          const series = await kept.events.ask("timeseries", question)
          expect(series, name).toEqual(referenceTimeseries(records, question))
        }
      },
      answerMaxMs,
    )

    test(
      "texts with quotes, colons, escapes and other scripts are values in every filter",
      async () => {
        for (const dimension of ["model", "client_ua", "tool_calls"] as const)
          for (const value of oddTexts) {
            const question = {
              organizationId: "org_a",
              startMs: epochMs,
              endMs: epochMs + spanMs,
              groupBy: dimension,
              metric: "requests" as const,
              buckets: 1,
              limit: 12,
              filters: [{ dimension, value, excluded: false }],
            }
            const series = await kept.events.ask("timeseries", question)
            expect(series, JSON.stringify(question)).toEqual(referenceTimeseries(records, question))
          }
      },
      answerMaxMs,
    )
  })

  test("the named cases hold what their names say", () => {
    const counts = new Map(
      namedQuestions().map(([name, question]) => [
        name,
        referenceOverview(records, question).summary.requests,
      ]),
    )
    expect(counts.get("an empty range")).toBe(0)
    expect(counts.get("an organization without events")).toBe(0)
    expect(counts.get("one event, at the start of the range")).toBe(1)
    expect(counts.get("the event at the end is in the next range")).toBe(1)
    for (const name of ["null keys found", "other scripts", "values with colons", "tools and none"])
      expect(counts.get(name), name).toBeGreaterThan(0)
  })

  test("at least one engine was there to be compared", () => {
    expect(engineNames.length).toBeGreaterThan(0)
  })
}

/** With events at both ends of the range that is asked most, and one just inside. */
function makeRecords(chance: Chance, count: number): SequenceRecord[] {
  const records = Array.from({ length: count }, (_, index) => makeRecord(chance, index))
  const [first, second, third, ...others] = records
  if (!first || !second || !third) return records
  return [
    { ...first, timestamp: epochMs, organization_id: "org_a" },
    { ...second, timestamp: epochMs + spanMs, organization_id: "org_a" },
    { ...third, timestamp: epochMs + spanMs - 1, organization_id: "org_b" },
    ...others,
  ]
}
