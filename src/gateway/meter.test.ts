import { describe, expect, test } from "vitest"
import { ManualClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { Fault } from "../contract/errors.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import {
  type MeterParts,
  type Sequence,
  createMeter,
  failureOf,
  modelNamedIn,
  noUsage,
  success,
} from "./meter.ts"

const prices = { inputTokenTicks: 2n, cachedInputTokenTicks: 0n, outputTokenTicks: 0n, millisecondTicks: 0n }
const model = { sku: "m", prices } as Parameters<Sequence["reserve"]>[0]

/** A meter over parts that answer at once, unless told otherwise; notes what it asked of them. */
function meter(changes: {
  readonly payer?: () => Promise<string>
  readonly append?: (record: SequenceRecord) => Promise<void>
  readonly room?: () => Promise<void>
}) {
  const seen = { payers: 0, records: [] as SequenceRecord[], settled: [] as bigint[] }
  const parts = {
    journal: {
      checkRoom: changes.room ?? (async () => undefined),
      append: async (record) => {
        seen.records.push(record)
        await changes.append?.(record)
      },
    },
    leases: {
      reserve: async (_, __, ticks) => ({
        ticks,
        mode: "postpaid",
        settle: (cost) => seen.settled.push(cost),
      }),
    },
    payers: {
      of: async () => {
        seen.payers++
        return (await changes.payer?.()) ?? "ba_1"
      },
    },
    clock: new ManualClock(1_800_000_000_000),
    ids: createIds(),
    log: silentLog,
  } satisfies MeterParts
  const request = { id: "req_1", ip: "127.0.0.1", userAgent: null, startedMs: 1_800_000_000_000 }
  const start = {
    callSource: "decisions",
    inferenceType: "generation",
    principal: { kind: "key", id: "key_1" },
    organizationId: "org_1",
    request,
  } as unknown as Parameters<ReturnType<typeof createMeter>["begin"]>[0]
  return { seen, sequence: createMeter(parts).begin(start) }
}

const usage = { ...noUsage, inputTokens: 3 }

describe("a sequence", () => {
  test("is reserved, recorded and settled", async () => {
    const { seen, sequence } = meter({})
    await sequence.reserve(model, { ...noUsage, inputTokens: 10 })
    await sequence.finish(usage, success)
    expect(seen.records).toMatchObject([
      { billing_account_id: "ba_1", billing_mode: "postpaid", input_tokens: 3, cost_ticks: "6" },
    ])
    expect(seen.settled).toEqual([6n])
  })

  test("asks once who pays, and whoever asked for it hears why that is not known", async () => {
    const { seen, sequence } = meter({ payer: async () => await Promise.reject(new Error("away")) })
    await expect(sequence.reserve(model, usage)).rejects.toThrow("away")
    // A promise that nobody holds would end the process here.
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen.payers).toBe(1)
  })

  test("waits for the journal to have room, and is refused when it has none", async () => {
    const patient = meter({ room: async () => undefined })
    await patient.sequence.reserve(model, usage)
    expect(patient.seen.payers).toBe(1)
    const full = meter({ room: async () => await Promise.reject(new Error("full")) })
    await expect(full.sequence.reserve(model, usage)).rejects.toMatchObject({ code: "metering_unavailable" })
    expect(full.seen.payers).toBe(0)
  })

  test("that cannot be recorded costs nothing and is not answered", async () => {
    const { seen, sequence } = meter({ append: async () => await Promise.reject(new Error("no space")) })
    await sequence.reserve(model, usage)
    await expect(sequence.finish(usage, success)).rejects.toBeInstanceOf(Fault)
    expect(seen.settled).toEqual([0n])
  })

  test("whose usage is no number fails as one that cannot be recorded", async () => {
    const { seen, sequence } = meter({})
    await sequence.reserve(model, usage)
    await expect(sequence.finish({ ...noUsage, inputTokens: Number.NaN }, success)).rejects.toMatchObject({
      code: "metering_unavailable",
    })
    expect([seen.records, seen.settled]).toEqual([[], [0n]])
  })

  test("is finished once, whatever comes after", async () => {
    const { seen, sequence } = meter({})
    await sequence.reserve(model, usage)
    await sequence.finish(usage, success)
    await sequence.finish(noUsage, { ...success, result: "error" })
    expect(seen.records.map(({ result }) => result)).toEqual(["success"])
    expect(seen.settled).toEqual([6n])
  })
})

describe("the model that a refused body names", () => {
  const large = "x".repeat(70_000)
  test.each([
    ["of a valid body", '{"input":{"model":"inner"},"model":"m"}', "m"],
    ["that is no text", '{"model":7}', ""],
    ["of a body without one", "[]", ""],
    ["of null", "null", ""],
    ["of a body that is no JSON", '{"model" : "a\\u0062\\"", "input":', 'ab"'],
    ["of a large body", `{"model":"m","input":"${large}"}`, "m"],
    ["of a large body that names it too late", `{"input":"${large}","model":"m"}`, ""],
    ["of no text at all", "", ""],
  ])("%s", (_, body, model) => {
    expect(modelNamedIn(Buffer.from(body))).toBe(model)
  })

  test("is recorded, cut to 256 bytes between characters", async () => {
    const { seen, sequence } = meter({})
    sequence.name(`${"x".repeat(255)}é`)
    await sequence.finish(noUsage, failureOf(new Fault("unknown_model", "Cannot")))
    expect(seen.records.map(({ model }) => model)).toEqual(["x".repeat(255)])
  })
})
