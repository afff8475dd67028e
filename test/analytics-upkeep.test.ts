/** What every engine does beside answering: it forgets, finds, writes to files and takes from them. */
import { readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { createIds } from "../src/base/ids.ts"
import { systemClock } from "../src/base/clock.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { type TestEvents, engineNames, openTestEvents } from "./analytics-engines.ts"
import { oddTexts } from "./analytics-samples.ts"
import { sequenceRecord } from "./sequence-record.ts"

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** The first moment of a month: what is older than it is in months of their own. */
const monthMs = Date.UTC(2026, 2, 1)
const afterAllMs = Date.UTC(2100, 0, 1)
const startMaxMs = 300_000

const at = (timestamp: number, more: Partial<SequenceRecord> = {}): SequenceRecord =>
  sequenceRecord({ seq_id: `seq_${timestamp}`, timestamp, ...more })

describe.each(engineNames)("%s", (engine) => {
  let kept: TestEvents

  beforeAll(async () => {
    kept = await openTestEvents(engine)
  }, startMaxMs)
  beforeEach(() => kept.events.ask("prune", { beforeMs: afterAllMs }), startMaxMs)
  afterAll(() => kept.close())

  const holdings = async (): Promise<unknown> => await kept.events.ask("holdings", null)

  test.each([
    ["within a month", monthMs + 10 * dayMs],
    ["at the start of a month", monthMs],
  ])(
    "pruning %s removes what began before and keeps what began then",
    async (_, beforeMs) => {
      const old = [beforeMs - 70 * dayMs, beforeMs - 35 * dayMs, beforeMs - 1]
      const young = [beforeMs, beforeMs + 1, beforeMs + 40 * dayMs]
      await kept.keep([...old, ...young].map((timestamp) => at(timestamp)))
      await kept.events.ask("prune", { beforeMs })
      expect(await holdings()).toEqual({
        events: young.length,
        oldestMs: beforeMs,
        newestMs: beforeMs + 40 * dayMs,
      })
    },
    startMaxMs,
  )

  test(
    "a sequence is found by its id in its organization and range, and by nobody else",
    async () => {
      // One id says its time, one is of another time than its event, and one says nothing.
      const ids = createIds({ ...systemClock, nowMs: () => monthMs + 5 })
      const timely = at(monthMs + 5, { seq_id: ids.next("seq") })
      const late = at(monthMs + 9 * dayMs, { seq_id: ids.next("seq") })
      const named = at(monthMs + 3, { seq_id: oddTexts[10] })
      await kept.keep([timely, late, named])
      for (const { seq_id: seqId, timestamp } of [timely, late, named]) {
        const find = async (startMs?: number, endMs?: number, organizationId = "org_1"): Promise<unknown> =>
          await kept.events.ask("sequence", { organizationId, seqId, startMs, endMs })
        const found = expect.objectContaining({ seq_id: seqId, timestamp }) as unknown
        expect(await find()).toEqual(found)
        expect(await find(timestamp, timestamp + 1)).toEqual(found)
        expect(await find(timestamp + 1)).toBeNull()
        expect(await find(undefined, timestamp)).toBeNull()
        expect(await find(undefined, undefined, "org_2")).toBeNull()
      }
    },
    startMaxMs,
  )

  test(
    "an export has the organization's events of the range, for its owner alone, and replaces the file that was there",
    async () => {
      await kept.keep([
        at(monthMs - 1),
        at(monthMs),
        at(monthMs + 1, { organization_id: "org_2" }),
        at(monthMs + 2),
        at(monthMs + 3),
      ])
      const file = join(kept.directory, "it's events.parquet")
      await writeFile(file, "what was there", { mode: 0o644 })
      const range = { startMs: monthMs, endMs: monthMs + 3 }
      const answered = await kept.events.ask("export", { file, organizationId: "org_1", ...range })
      expect(answered).toEqual({ events: 2 })
      expect((await stat(file)).mode & 0o777).toBe(0o600)
      const bytes = await readFile(file)
      expect(bytes.subarray(0, 4).toString()).toBe("PAR1")
      const all = await kept.events.ask("export", { file, organizationId: undefined, ...range })
      expect(all).toEqual({ events: 3 })
    },
    startMaxMs,
  )

  test(
    "an import counts each event once however often it comes, and nothing after a bad line",
    async () => {
      const file = join(kept.directory, "events.jsonl")
      const good = [at(monthMs), at(monthMs + 1), at(monthMs + 1)].map((record) => JSON.stringify(record))
      await writeFile(file, `${good.join("\r\n")}\n\n`)
      for (let time = 0; time < 2; time++) await kept.events.import(file)
      expect(await holdings()).toMatchObject({ events: 2 })
      const bad = { ...at(monthMs + 2), result: "maybe" }
      await writeFile(file, [...good, JSON.stringify(bad), JSON.stringify(at(monthMs + 3))].join("\n"))
      await expect(kept.events.import(file)).rejects.toThrow("Cannot import line 4: result")
      expect(await holdings()).toMatchObject({ events: 2 })
    },
    startMaxMs,
  )

  test(
    "what an export wrote is imported as it was, and counts once",
    async () => {
      const records = [
        at(monthMs, {
          tags: { team: "a=b" },
          tool_calls: ["find", "é"],
          cost_ticks: "9000000000000000",
          queue_ms: 1.5,
        }),
        at(monthMs + 1, { error_message: "naïve", request_id: null }),
      ]
      await kept.keep(records)
      const file = join(kept.directory, "again.parquet")
      const range = { startMs: monthMs, endMs: monthMs + dayMs }
      await kept.events.ask("export", { file, organizationId: undefined, ...range })
      const lookup = {
        organizationId: "org_1",
        seqId: records[0]?.seq_id ?? "",
        startMs: undefined,
        endMs: undefined,
      }
      const before = await kept.events.ask("request", lookup)
      await kept.events.ask("prune", { beforeMs: monthMs + dayMs })
      expect((await kept.events.ask("request", lookup)) ?? null).toBe(null)
      for (let time = 0; time < 2; time++) expect(await kept.events.import(file)).toEqual({ events: 2 })
      expect(await holdings()).toMatchObject({ events: 2 })
      expect(await kept.events.ask("request", lookup)).toEqual(before)
    },
    startMaxMs,
  )

  test(
    "the charged events of an account are added up by day and model, to the last tick",
    async () => {
      const ticks = "900000000000000000"
      await kept.keep([
        at(monthMs, { cost_ticks: ticks }),
        at(monthMs + dayMs - 1, { cost_ticks: ticks }),
        at(monthMs + dayMs, { cost_ticks: "1" }),
        at(monthMs + 1, { cost_ticks: "0" }),
        at(monthMs + 2, { billing_account_id: null }),
      ])
      const range = { organizationId: "org_1", startMs: monthMs, endMs: monthMs + 2 * dayMs }
      const sums = await kept.events.ask("sums", range)
      const model = { organization_id: "org_1", billing_account_id: "ba_1", model: "umpire-decide" }
      const tokens = { input_tokens: 100, cached_input_tokens: 0, output_tokens: 0 }
      const day = monthMs / dayMs
      expect(sums.toSorted((a, b) => a.day - b.day)).toEqual([
        { ...model, ...tokens, day, sequences: 2, input_tokens: 200, ticks: "1800000000000000000" },
        { ...model, ...tokens, day: day + 1, sequences: 1, ticks: "1" },
      ])
    },
    startMaxMs,
  )
})
