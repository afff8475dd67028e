import { once } from "node:events"
import { expect, test } from "vitest"
import type { Model } from "../base/catalog.ts"
import { ManualClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { silentLog } from "../base/log.ts"
import { usdText } from "../base/money.ts"
import { RateLimiter } from "../base/rate-limiter.ts"
import type { CascadeRule } from "../contract/platform/virtual-models.ts"
import { Fault } from "../contract/errors.ts"
import type { EngineCall } from "../engine/engine.ts"
import { predicate } from "../engine/branch.ts"
import type { SequenceRecord } from "../store/journal/record.ts"
import type { Question } from "./classification/classification.ts"
import { createMeter } from "./meter.ts"
import { type Asker, runMetered } from "./metered-call.ts"
import { noUsage } from "./sequence-record.ts"
import type { Resolved } from "./organization-access.ts"
import { setReader } from "./question-sets/policy.ts"
import { type StagedRequest, type StageReader, plainReader, scoreStages } from "./decision-stages.ts"
import { tokensMost } from "./cascade-stages.ts"

const model = (sku: string, inputTokenTicks: bigint): Model =>
  ({
    sku,
    prices: { inputTokenTicks, cachedInputTokenTicks: 0n, outputTokenTicks: 0n, millisecondTicks: 0n },
  }) as Model

const cascade: CascadeRule = {
  models: ["first", "next"],
  thresholds: { predicate: 1, choice: 1, score: 1 },
  on_failure: "answer",
  cost_max_usd: null,
  latency_max_ms: null,
}
const question: Question = { type: "predicate", name: "late", instructions: "Is it late?" } as Question
const work = { evidence: "The parcel came late.", branches: [predicate("Is it late?")] }
const inputTokens = 10
/** What a token's price is multiplied by where a model may be asked yet. */
const most = BigInt(tokensMost(work))

/** Runs stages with so much credit; models that are named so fail when they run. */
async function run<Answer>(
  stages: Resolved["stages"],
  reader: StageReader<Answer>,
  {
    failing,
    creditTicks,
    rule = cascade,
    hanging = [],
    isCharged = true,
  }: {
    readonly failing: readonly string[]
    readonly creditTicks: bigint
    readonly rule?: CascadeRule
    readonly hanging?: readonly string[]
    readonly isCharged?: boolean
  },
) {
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
  const { signal } = new AbortController()
  const asker = {
    principal: { kind: "key", id: "key_1" },
    membership: { organizationId: "org_1" },
    request: { id: "req_1", ip: "127.0.0.1", userAgent: null, startedMs: 0, header: () => null, signal },
    header: (name: string, value: string) => {
      if (name === "x-umpire-warning") warnings.push(value)
    },
  } as unknown as Asker
  const router = {
    open: async ({ model: sku }: { readonly model: string }) => ({
      score: async (_: unknown, { signal, admit }: EngineCall) => {
        await admit(inputTokens)
        if (hanging.includes(sku)) await once(signal, "abort")
        signal.throwIfAborted()
        if (failing.includes(sku)) throw new Fault("inference_failed", "Cannot run the request")
        return { margins: new Float64Array([1]), inputTokens }
      },
      close: () => undefined,
    }),
  }
  const parts = { router, clock, timeoutMs: 1000 } as unknown as Parameters<typeof scoreStages>[0]
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
  } satisfies Omit<StagedRequest, "call">
  const { answers } = await runMetered({ meter }, { callSource: "decisions", asker }, async (call) => {
    const staged = await scoreStages(parts, { ...request, call }, reader)
    await call.succeed(noUsage)
    return staged
  })
  const costs = records[0]?.stages?.map((stage) => `${stage.model} ${stage.result} ${stage.cost_ticks}`)
  return { answers, costs, warnings }
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
    rule: { ...cascade, latency_max_ms: 20, on_failure: "error" },
  })
  expect(costs).toEqual(["first success 10", "next budget_spent 0"])
  expect(warnings).toEqual(["next;code=budget_spent;questions=1"])
  expect(answers.map(({ margins }) => [...margins])).toEqual([[1]])
})

test("what is not charged asks a further model only up to the most that the request may cost", async () => {
  const stages = [[model("first", 1n)], [model("next", 1n)]] as const
  const resultsAt = async (ticks: bigint): Promise<(string | undefined)[]> => {
    const rule = { ...cascade, cost_max_usd: usdText(ticks) }
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
    const isSent = first !== undefined && own.isDoubtful(first, 0, cascade)
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
