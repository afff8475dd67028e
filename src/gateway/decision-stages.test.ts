import { once } from "node:events"
import { expect, test } from "vitest"
import { cascadeRule } from "../../test/cascade-rule.ts"
import { inferenceCall, routedTo, testModel } from "../../test/in-memory-gateway.ts"
import type { Model } from "../base/catalog.ts"
import { ManualClock } from "../../test/manual-clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { usdText } from "../base/money.ts"
import { RateLimiter } from "../base/rate-limiter.ts"
import type { CascadeRule } from "../contract/platform/virtual-models.ts"
import { Fault } from "../contract/errors.ts"
import { predicate } from "../engine/branch.ts"
import { UnusableAnswer } from "../engine/engine.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import type { Question } from "./classification/classification.ts"
import { createMeter, noUsage } from "./meter.ts"
import { runMetered } from "./metered-call.ts"
import type { Resolved } from "./organization-access.ts"
import { setReader } from "./question-sets/policy.ts"
import { plainReader, scoreStages, type PlainAnswer, type StageReader } from "./decision-stages.ts"
import type { StagedRequest } from "./further-stages.ts"
import { type ScoreDeps, tokensMost } from "./score.ts"

const model = (sku: string, inputTokenTicks: bigint): Model =>
  testModel({ sku, prices: { ...testModel().prices, inputTokenTicks } })

const question: Question = { type: "predicate", name: "late", instructions: "Is it late?" } as Question
const work = { evidence: "The parcel came late.", branches: [predicate("Is it late?")] }
const inputTokens = 10
/** What a token's price is multiplied by where a model may be asked yet. */
const most = BigInt(tokensMost(work))

/** Runs stages with so much credit; models that are named so fail when they run. */
async function run<Answer extends PlainAnswer>(
  stages: Resolved["stages"],
  reader: StageReader<Answer>,
  {
    failing,
    creditTicks,
    rule = cascadeRule,
    hanging = [],
    isCharged = true,
    dayTicks = 1_000_000n,
  }: {
    readonly failing: readonly string[]
    readonly creditTicks: bigint
    readonly rule?: CascadeRule
    readonly hanging?: readonly string[]
    readonly isCharged?: boolean
    /** What the day has left. */
    readonly dayTicks?: bigint
  },
) {
  const counted: string[] = []
  const unusable: bigint[] = []
  let heldTicks = 0n
  const cascadeDays: ScoreDeps["cascadeDays"] = {
    count: ({ stage, questions, changed = 0, unanswered = 0, costTicks }) =>
      void counted.push(`${stage}: ${questions} asked, ${changed} changed, ${unanswered} left, ${costTicks}`),
    hold: async (_, mostTicks) => {
      if (heldTicks + mostTicks > dayTicks) return null
      heldTicks += mostTicks
      return (costTicks) => void (heldTicks += costTicks - mostTicks)
    },
  }
  const records: SequenceRecord[] = []
  const warnings: string[] = []
  const clock = new ManualClock(0)
  const meter = createMeter({
    journal: { checkRoom: async () => undefined, append: async (record) => void records.push(record) },
    leases: {
      reserve: async (_, __, ticks) => {
        if (ticks > creditTicks) throw new Fault("insufficient_credits", "Cannot run the request")
        const reservation = {
          ticks,
          mode: "prepaid" as const,
          reduce: (to: bigint) => {
            if (to < reservation.ticks) reservation.ticks = to
          },
          settle: () => undefined,
        }
        return reservation
      },
    },
    budgets: { reserve: () => Promise.reject(new Error("there are no budgets")) },
    tagBudgets: { of: async () => [] },
    rateLimits: new RateLimiter(clock),
    payers: { of: async () => "ba_1" },
    clock,
    ids: createIds(),
    log: silentLog,
    observe: () => undefined,
  })
  const asker = inferenceCall(undefined, (name, value) => {
    if (name === "x-umpire-warning") warnings.push(value)
  })
  const router = {
    open: async ({ model: sku }: { readonly model: string }) =>
      routedTo({
        score: async (_, { signal, admit }) => {
          await admit(inputTokens)
          if (hanging.includes(sku)) await once(signal, "abort")
          signal.throwIfAborted()
          const failure = new Fault("inference_failed", "Cannot run the request")
          if (sku.startsWith("unusable")) throw new UnusableAnswer(failure, { ...noUsage, inputTokens: 100 })
          if (failing.includes(sku)) throw failure
          return { margins: new Float64Array([sku === "contrary" ? -1 : 1]), inputTokens }
        },
      }),
  }
  const deps = { router, clock, timeoutMs: 1000, cascadeDays }
  const request = {
    ...work,
    resolved: {
      stages,
      cascade: stages.length > 1 ? rule : null,
      virtual: "careful",
      isSplit: false,
      isFirstSplit: false,
    },
    questions: [question],
    isCharged,
    onUnusable: (costTicks: bigint) => void (costTicks > 0n && unusable.push(costTicks)),
  } satisfies Omit<StagedRequest, "call">
  const { answers } = await runMetered({ meter }, { callSource: "decisions", asker }, async (call) => {
    const staged = await scoreStages(deps, { ...request, call }, reader)
    await call.succeed(noUsage)
    return staged
  })
  const costs = records[0]?.stages?.map((stage) => `${stage.model} ${stage.result} ${stage.cost_ticks}`)
  return { answers, costs, warnings, counted, heldTicks, unusable }
}

const reader = plainReader([question])
const set = { evidence: "", setName: "mail", model: "careful" }

test("a dear model that answers for a cheap one of its stage is charged in full", async () => {
  const stages = [[model("first", 1n)], [model("cheap", 1n), model("dear", 100n)]] as const
  const { costs } = await run(stages, reader, { failing: ["cheap"], creditTicks: 1_000_000n })
  expect(costs).toEqual(["first success 10", "cheap inference_failed 0", "dear success 1000"])
})

test("what the first model of a stage leaves unpaid is paid where the next one costs less", async () => {
  const stages = [[model("dear", 100n), model("cheap", 1n)], [model("next", 1n)]] as const
  const creditTicks = 1000n + most - 1n
  const { costs, warnings } = await run(stages, reader, { failing: ["dear"], creditTicks })
  expect(warnings).toEqual([])
  expect(costs).toEqual(["dear inference_failed 0", "cheap success 10", "next success 10"])
})

test("a stage that is cut when the time is up is free, and the answers before it stand, also where failures are errors", async () => {
  const stages = [[model("first", 1n)], [model("next", 1n)]] as const
  const { costs, warnings, answers } = await run(stages, reader, {
    failing: [],
    hanging: ["next"],
    creditTicks: 1_000_000n,
    rule: { ...cascadeRule, latency_max_ms: 20, on_failure: "error" },
  })
  expect(costs).toEqual(["first success 10", "next budget_spent 0"])
  expect(warnings).toEqual(["next;code=budget_spent;questions=1"])
  expect(answers.map(({ margins }) => [...margins])).toEqual([[1]])
})

test("what is sent on is counted with what it changed, and a day whose budget is spent leaves the answers as they are", async () => {
  const rule = { ...cascadeRule, cost_max_day_usd: "1" }
  const given = { failing: ["away"], creditTicks: 1_000_000n, rule }
  const agreeing = await run([[model("first", 1n)], [model("next", 1n)]], reader, given)
  expect(agreeing.counted).toEqual(["0: 1 asked, 0 changed, 0 left, 10", "1: 1 asked, 0 changed, 0 left, 10"])
  expect(agreeing.heldTicks).toBe(10n)
  const stages = [[model("first", 1n)], [model("away", 5n), model("contrary", 2n)]] as const
  const changing = await run(stages, reader, given)
  expect(changing.counted[1]).toBe("1: 1 asked, 1 changed, 0 left, 20")
  expect(changing.heldTicks).toBe(20n)
  const spent = await run(stages, reader, { ...given, dayTicks: 19n })
  expect(spent.counted[1]).toBe("1: 0 asked, 0 changed, 1 left, 0")
  expect(spent.warnings).toEqual(["contrary;code=budget_spent;questions=1"])
  expect(spent.heldTicks).toBe(0n)
})

test("an answer that cannot be used counts with its stage and in its day, whichever model answers instead, and is not charged", async () => {
  const rule = { ...cascadeRule, cost_max_day_usd: "1" }
  const given = { failing: ["away"], creditTicks: 1_000_000n, rule }
  const [first, unusable, away] = [model("first", 1n), model("unusable", 3n), model("away", 1n)]
  const replaced = await run(
    [
      [unusable, first],
      [unusable, model("unusable too", 2n), first],
    ],
    reader,
    given,
  )
  expect(replaced.counted).toEqual([
    "0: 1 asked, 0 changed, 0 left, 310",
    "1: 1 asked, 0 changed, 0 left, 510",
  ])
  expect(replaced.heldTicks).toBe(510n)
  expect(replaced.costs?.map((one) => one.split(" ").at(-1))).toEqual(["0", "10", "0", "0", "10"])
  expect(replaced.unusable).toEqual([300n, 300n, 200n])
  const given_up = await run([[first], [unusable, away]], reader, given)
  expect(given_up.counted[1]).toBe("1: 0 asked, 0 changed, 1 left, 300")
  expect(given_up.heldTicks).toBe(300n)
})

test("answers that cannot be used count in what the request may cost", async () => {
  const stages = [[model("unusable", 1n), model("first", 1n)], [model("next", 1n)]] as const
  const resultsAt = async (ticks: bigint): Promise<string | undefined> => {
    const rule = { ...cascadeRule, cost_max_usd: usdText(ticks) }
    const { costs } = await run(stages, reader, { failing: [], creditTicks: 0n, rule, isCharged: false })
    return costs?.at(-1)
  }
  expect(await resultsAt(120n)).toBe("next success 0")
  expect(await resultsAt(119n)).toBe("next budget_spent 0")
})

test("what is not charged asks a further model only up to the most that the request may cost", async () => {
  const stages = [[model("first", 1n)], [model("next", 1n)]] as const
  const resultsAt = async (ticks: bigint): Promise<(string | undefined)[]> => {
    const rule = { ...cascadeRule, cost_max_usd: usdText(ticks) }
    const { costs } = await run(stages, reader, { failing: [], creditTicks: 0n, rule, isCharged: false })
    return costs ?? []
  }
  expect(await resultsAt(20n)).toEqual(["first success 0", "next success 0"])
  expect(await resultsAt(19n)).toEqual(["first success 0", "next budget_spent 0"])
})

test("a set's calibration applies to the first model, not to one that answers in its place", async () => {
  const calibration = { temperature: 1, bias: 3 }
  const stages = [[model("first", 1n), model("other", 1n)]] as const
  const asked = setReader(
    [{ question, threshold: null, below: "answer", calibration, taught: null, cascade: null, rules: [] }],
    { stages, isFirstSplit: false },
    set,
  )
  const marginsOf = async (failing: readonly string[]): Promise<number[][]> => {
    const { answers } = await run(stages, asked, { failing, creditTicks: 1_000_000n })
    return answers.map(({ margins }) => [...margins])
  }
  expect(await marginsOf([])).toEqual([[4]])
  expect(await marginsOf(["first"])).toEqual([[1]])
})

test("what was fitted to the stages decides what is sent on and how answers are combined, for the versions it was fitted to", () => {
  const stages = [[model("small", 1n)], [model("large", 1n)]] as const
  const taught = {
    modelVersion: "small/1",
    taught: {
      kind: "predicate" as const,
      needsVector: false,
      apply: (margins: ArrayLike<number>) => Float64Array.from(margins),
    },
    ruleWeights: [],
  }
  const fitted = {
    stages: [
      { model: "small", modelVersion: "small/1" },
      { model: "large", modelVersion: "large/1" },
    ],
    thresholds: [0.9],
    blends: [{ first: 1, later: 0.5 }],
  }
  const base = { question, threshold: 0.1, below: "answer" as const, calibration: null, taught, rules: [] }
  const readWith = (models: readonly string[], at: Resolved["stages"] = stages) => {
    const own = setReader([{ ...base, cascade: fitted }], { stages: at, isFirstSplit: false }, set)
    const read = (stage: number, margin: number) =>
      own.read([0], Float64Array.of(margin), {
        reading: { vector: null, modelVersion: models[stage] ?? "" },
        isFirst: stage === 0,
        stage,
      })[0]
    const first = read(0, 2)
    const isSent = first !== undefined && own.isDoubtful(first, 0, cascadeRule)
    return [isSent, read(1, -8)?.margins[0]]
  }
  // 0.88 of the first stage; 2 - 8 / 2.
  expect(readWith(["small/1", "large/1"])).toEqual([true, -2])
  expect(readWith(["small/1", "large/2"])).toEqual([true, -8])
  expect(readWith(["small/2", "large/1"])).toEqual([false, -8])
  const others = [[model("small", 1n)], [model("other", 1n)]] as const
  expect(readWith(["small/1", "large/1"], others)).toEqual([false, -8])
})

test("a calibration is refused where requests are split between models, for it fits one of them", () => {
  const stages = [[model("first", 1n)]] as const
  const asked = {
    question,
    threshold: null,
    below: "answer",
    taught: null,
    cascade: null,
    rules: [],
  } as const
  const read = (calibration: { temperature: number; bias: number } | null) => () =>
    setReader([{ ...asked, calibration }], { stages, isFirstSplit: true }, set)
  expect(read({ temperature: 1, bias: 3 })).toThrow(/mail has a calibration.* careful splits requests/)
  expect(read(null)).not.toThrow()
})
