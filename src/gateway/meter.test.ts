import { describe, expect, test } from "vitest"
import { keyPrincipal, organizationId, requestFacts } from "../../test/in-memory-gateway.ts"
import { ManualClock } from "../../test/manual-clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { RateLimiter } from "../base/rate-limiter.ts"
import type { KeyLimits } from "../contract/access.ts"
import type { RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import { createMeter, failureOf, type MeterDeps, noUsage, type Sequence, success } from "./meter.ts"
import { modelNamedIn } from "./metered-call.ts"
import type { MatchedTagBudget } from "./reservations.ts"

const prices = { inputTokenTicks: 2n, cachedInputTokenTicks: 0n, outputTokenTicks: 0n, millisecondTicks: 0n }
const model = { sku: "m", prices } as Parameters<Sequence["reserve"]>[0]

/** A meter over parts that answer at once, unless told otherwise; notes what it asked of them. */
function meter(changes: {
  readonly payer?: () => Promise<string>
  readonly append?: (record: SequenceRecord) => Promise<void>
  readonly room?: () => Promise<void>
  readonly request?: Partial<RequestFacts>
}) {
  const seen = {
    payers: 0,
    records: [] as SequenceRecord[],
    reservedMs: [] as number[],
    settled: [] as bigint[],
    reduced: [] as bigint[],
  }
  const deps = {
    journal: {
      checkRoom: changes.room ?? (async () => undefined),
      append: async (record) => {
        seen.records.push(record)
        await changes.append?.(record)
      },
    },
    leases: {
      reserve: async (_, atMs, ticks) => {
        seen.reservedMs.push(atMs)
        return {
          ticks,
          mode: "postpaid",
          reduce: (to) => seen.reduced.push(to),
          settle: (cost) => seen.settled.push(cost),
        }
      },
    },
    budgets: { reserve: () => Promise.reject(new Error("there are no budgets")) },
    tagBudgets: { of: async () => [] },
    rateLimits: new RateLimiter(),
    payers: {
      of: async () => {
        seen.payers++
        return (await changes.payer?.()) ?? "ba_1"
      },
    },
    clock: new ManualClock(1_800_000_000_000),
    ids: createIds(),
    log: silentLog,
    observe: () => undefined,
  } satisfies MeterDeps
  const request = requestFacts({ startedMs: 1_800_000_000_000, ...changes.request })
  const start = { callSource: "decisions", principal: keyPrincipal, organizationId, request } as const
  return { seen, sequence: createMeter(deps).begin(start) }
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

  test("of an attempt that took over is charged at the time of the first, and took as long as itself", async () => {
    const chargedMs = 1_800_000_000_000 - 120_000
    const { seen, sequence } = meter({ request: { sequenceId: "seq_given", chargedMs } })
    await sequence.reserve(model, usage)
    await sequence.finish(usage, success)
    expect(seen.reservedMs).toEqual([chargedMs])
    expect(seen.records).toMatchObject([
      {
        seq_id: "seq_given",
        timestamp: chargedMs,
        seq_duration_ms: 0,
        gateway_latency_ms: 0,
        may_repeat: true,
      },
    ])
  })

  test("that may be repeated and failed for nothing has the id that it is recorded under", async () => {
    const { seen, sequence } = meter({ request: { sequenceId: "seq_given" } })
    expect(sequence.id).toBe("seq_given")
    await sequence.finish(noUsage, failureOf(new Error("broken")))
    expect(sequence.id).not.toBe("seq_given")
    expect(seen.records.map(({ seq_id }) => seq_id)).toEqual([sequence.id])
  })

  test("with stages charges their sum, and gives back what a further stage does not need", async () => {
    const { seen, sequence } = meter({})
    const dear = { ...model, sku: "dear", prices: { ...prices, inputTokenTicks: 100n } }
    sequence.describe({ virtualModel: "careful" })
    sequence.beginStage(model, 3)
    await sequence.reserve(model, usage, 5_000n)
    sequence.endStage("success", usage)
    sequence.beginStage(dear, 1)
    await sequence.admitStage(dear, { ...noUsage, inputTokens: 10 }, 0n)
    sequence.endStage("success", { ...noUsage, inputTokens: 7 })
    await sequence.finish(noUsage, success)
    expect([seen.reduced, seen.settled]).toEqual([[1_006n], [706n]])
    expect(seen.records).toMatchObject([
      {
        model: "dear",
        virtual_model: "careful",
        input_tokens: 10,
        cost_ticks: "706",
        stages: [
          { model: "m", result: "success", questions: 3, input_tokens: 3, cost_ticks: "6" },
          { model: "dear", result: "success", questions: 1, input_tokens: 7, cost_ticks: "700" },
        ],
      },
    ])
  })

  test("whose last stage fails costs nothing, and says which stages there were", async () => {
    const { seen, sequence } = meter({})
    sequence.beginStage(model)
    await sequence.reserve(model, usage, 5_000n)
    sequence.endStage("success", usage)
    sequence.beginStage(model)
    await sequence.finish(noUsage, failureOf(new Fault("overloaded", "Cannot run the request")))
    expect(seen.settled).toEqual([0n])
    expect(seen.records[0]?.stages?.map(({ result, cost_ticks }) => [result, cost_ticks])).toEqual([
      ["success", "0"],
      ["overloaded", "0"],
    ])
  })

  test("is recorded with who asked, its question set, its tags and where its time went", async () => {
    const { seen, sequence } = meter({})
    sequence.tag({ team: "header" })
    sequence.tag({ team: "body", user: "ann" })
    sequence.describe({ questionSetId: "qs_1", questionSet: "tickets", questionSetVersion: 2, questions: 3 })
    sequence.describe({ abstained: 1 })
    sequence.trace.enter("engine")
    sequence.trace.leave("engine")
    sequence.trace.add({ region: "local", result: "success", ms: 0 })
    await sequence.finish(usage, success)
    expect(seen.records).toMatchObject([
      {
        principal_kind: "key",
        principal_id: "key_1",
        question_set_id: "qs_1",
        question_set: "tickets",
        question_set_version: 2,
        questions: 3,
        abstained: 1,
        tags: { team: "header", user: "ann" },
        attempts: [{ region: "local", result: "success", ms: 0 }],
        queue_ms: null,
        engine_ms: 0,
      },
    ])
  })

  test("asks once who pays, and whoever asked for it hears why that is not known", async () => {
    const { seen, sequence } = meter({ payer: async () => await Promise.reject(new Error("away")) })
    await expect(sequence.reserve(model, usage)).rejects.toThrow("away")
    // An unhandled rejection would end the process here.
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

const ops = { id: "tbg_1", key: "team", value: "ops", periods: ["month" as const] }
const noRates = { rateLimit: null, tokensPerMinute: null }

const tokens = (inputTokens: number, outputTokens = 0) => ({ ...noUsage, inputTokens, outputTokens })

describe("a key with limits of its own", () => {
  const limited = (
    keyLimits: Partial<KeyLimits>,
    budgets: MeterDeps["budgets"] = noBudgets,
    creditTicks = 1_000n,
    tagLimits: readonly MatchedTagBudget[] = [{ ...ops, ...noRates }],
  ) => {
    const settled: [string, bigint][] = []
    const records: SequenceRecord[] = []
    const rateLimits = new RateLimiter(new ManualClock(0))
    const lease = (kind: string) => async (id: string, _: number, ticks: bigint) => {
      if (ticks > creditTicks) throw new Fault("insufficient_credits", "Cannot run the request")
      const settle = (cost: bigint): void => void settled.push([kind === "" ? id : kind, cost])
      return { ticks, mode: "prepaid" as const, reduce: () => undefined, settle }
    }
    const metered = createMeter({
      journal: { checkRoom: async () => undefined, append: async (record) => void records.push(record) },
      leases: { reserve: lease("account") },
      budgets: budgets === noBudgets ? { reserve: lease("") } : budgets,
      tagBudgets: {
        of: async (_, tags) => tagLimits.filter(({ key, value }) => tags[key] === value),
      },
      rateLimits,
      payers: { of: async () => "ba_1" },
      clock: new ManualClock(0),
      ids: createIds(),
      log: silentLog,
      observe: () => undefined,
    })
    const none = { tokensPerMinute: null, allowedModels: null, allowedNetworks: null, budgets: [] }
    const begin = (): Sequence =>
      metered.begin({
        callSource: "decisions",
        principal: { ...keyPrincipal, keyLimits: { ...none, ...keyLimits } },
        organizationId,
        request: requestFacts(),
      })
    return { begin, settled, records }
  }
  const noBudgets: MeterDeps["budgets"] = { reserve: () => Promise.reject(new Error("unused")) }

  test("runs only the models that it names", async () => {
    const { begin } = limited({ allowedModels: ["other"] })
    await expect(begin().reserve(model, usage)).rejects.toMatchObject({ code: "model_denied" })
    await limited({ allowedModels: ["m"] })
      .begin()
      .reserve(model, usage)
  })

  test("counts what is read before it runs and what is written after, to its tokens a minute", async () => {
    const { begin } = limited({ tokensPerMinute: 100 })
    const first = begin()
    await first.reserve(model, tokens(60))
    await begin().reserve(model, tokens(30))
    await expect(begin().reserve(model, tokens(11))).rejects.toMatchObject({ code: "rate_limited" })
    await first.finish(tokens(60, 10), success)
    await expect(begin().reserve(model, tokens(1))).rejects.toMatchObject({ code: "rate_limited" })
  })

  test("a request of more tokens than a minute allows is let in once, and is a debt that all later ones wait for", async () => {
    const { begin } = limited({ tokensPerMinute: 100 })
    await begin().reserve(model, tokens(250))
    await expect(begin().reserve(model, tokens(1))).rejects.toMatchObject({
      code: "rate_limited",
      // 150 of the 250 and the one that is asked for, at 100 a minute.
      retryAfterMs: expect.closeTo(90_600) as number,
    })
  })

  test("is held by the requests a minute of its tags: as many as they allow, and not one more", async () => {
    const night = { ...noRates, id: "tbg_2", key: "shift", value: "night", periods: [] }
    const { begin, settled } = limited({}, noBudgets, 1_000n, [
      { ...ops, ...noRates, periods: [], rateLimit: { requestsPerMinute: 60, burst: 2 } },
      { ...night, rateLimit: { requestsPerMinute: 60, burst: 1 } },
    ])
    const reserve = async (tags: Record<string, string>): Promise<void> => {
      const sequence = begin()
      sequence.tag(tags)
      await sequence.reserve(model, tokens(1))
    }
    await reserve({ shift: "night" })
    // Refused by one tag, it is not counted against the other.
    for (let again = 0; again < 3; again++)
      await expect(reserve({ team: "ops", shift: "night" })).rejects.toMatchObject({
        code: "rate_limited",
        message: expect.stringContaining("the tag shift=night may have 60 requests a minute"),
        retryAfterMs: 1_000,
      })
    await reserve({ team: "ops" })
    await reserve({ team: "ops" })
    await expect(reserve({ team: "ops" })).rejects.toMatchObject({ code: "rate_limited" })
    await reserve({ team: "sales" })
    await reserve({})
    expect(settled).toEqual([])
  })

  test("is held by the tokens a minute of its tags, which what is refused for money does not use", async () => {
    const tag = { ...ops, ...noRates, periods: [], tokensPerMinute: 100 }
    const { begin } = limited({}, noBudgets, 150n, [tag])
    const reserve = async (count: number): Promise<Sequence> => {
      const sequence = begin()
      sequence.tag({ team: "ops" })
      await sequence.reserve(model, tokens(count))
      return sequence
    }
    // It costs 160.
    await expect(reserve(80)).rejects.toMatchObject({ code: "insufficient_credits" })
    const first = await reserve(60)
    await reserve(39)
    await expect(reserve(2)).rejects.toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("the tag team=ops may use 100 tokens a minute"),
    })
    await first.finish(tokens(60, 1), success)
    await expect(reserve(1)).rejects.toMatchObject({ code: "rate_limited" })
  })

  test("uses nothing of its tags' limits where a fallback is refused, also not by the model that failed first", async () => {
    const rateLimit = { requestsPerMinute: 60, burst: 1 }
    const tag = { ...ops, periods: [], rateLimit, tokensPerMinute: 100 }
    const { begin } = limited({}, noBudgets, 150n, [tag])
    const attempt = (): Sequence => {
      const sequence = begin()
      sequence.tag({ team: "ops" })
      sequence.beginStage(model)
      return sequence
    }
    const refuse = async (count: number, code: string): Promise<void> => {
      const sequence = attempt()
      await sequence.reserve(model, tokens(20))
      sequence.endStage("inference_failed", noUsage)
      sequence.beginStage(model)
      await expect(sequence.reserve(model, tokens(count))).rejects.toMatchObject({ code })
    }
    // It costs 160.
    await refuse(80, "insufficient_credits")
    await refuse(81, "rate_limited")
    // Both limits to the full.
    const whole = attempt()
    await whole.reserve(model, tokens(75))
    whole.endStage("inference_failed", noUsage)
    whole.beginStage(model)
    await whole.reserve(model, tokens(25))
    await expect(attempt().reserve(model, tokens(1))).rejects.toMatchObject({ code: "rate_limited" })
  })

  test("holds its cost under each budget, and its record names them", async () => {
    const { begin, settled, records } = limited({ budgets: ["day", "month"] })
    const sequence = begin()
    await sequence.reserve(model, tokens(10))
    await sequence.finish(usage, success)
    expect(settled).toEqual([
      ["account", 6n],
      ["key_1/day", 6n],
      ["key_1/month", 6n],
    ])
    expect(records[0]?.budgets).toEqual(["day", "month"])
  })

  test("holds its cost under the budgets of its tags too, and its record names them apart", async () => {
    const { begin, settled, records } = limited({ budgets: ["day"] })
    const sequence = begin()
    sequence.tag({ team: "ops" })
    await sequence.reserve(model, tokens(10))
    await sequence.finish(usage, success)
    expect(settled).toEqual([
      ["account", 6n],
      ["key_1/day", 6n],
      ["tbg_1/month", 6n],
    ])
    expect(records[0]).toMatchObject({ budgets: ["day"], tag_budgets: { tbg_1: ["month"] } })
  })

  test("gives back what it held when another budget refuses", async () => {
    const settled: bigint[] = []
    const { begin } = limited(
      { budgets: ["day", "month"] },
      {
        reserve: async (id, _, ticks) => {
          if (id.endsWith("/month")) throw new Fault("key_budget_exceeded", "Cannot run the request")
          return {
            ticks,
            mode: "prepaid",
            reduce: () => undefined,
            settle: (cost) => void settled.push(cost),
          }
        },
      },
    )
    await expect(begin().reserve(model, usage)).rejects.toMatchObject({ code: "key_budget_exceeded" })
    expect(settled).toEqual([0n])
  })

  test("a reservation that is tried again with less counts its tokens once and is held under each budget once", async () => {
    const settled: bigint[] = []
    const { begin, records } = limited(
      { budgets: ["day"], tokensPerMinute: 100 },
      {
        reserve: async (_, __, ticks) => ({
          ticks,
          mode: "prepaid",
          reduce: () => undefined,
          settle: (cost) => void settled.push(cost),
        }),
      },
      60n,
    )
    const sequence = begin()
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(sequence.reserve(model, tokens(40))).rejects.toMatchObject({
        code: "insufficient_credits",
      })
    await sequence.reserve(model, tokens(30))
    await sequence.finish(usage, success)
    expect(settled).toEqual([0n, 0n, 0n, 6n])
    expect(records[0]?.budgets).toEqual(["day"])
    await begin().reserve(model, tokens(30))
  })
})
