/** Teaches a set whose model is a cascade: fits the thresholds of its stages together, and says what the cascade will do and cost. */
import { usdText } from "../../base/money.ts"
import type { CascadeRule } from "../../contract/platform/virtual-models.ts"
import type { TaughtCascadeReport, TaughtQuestionCascade } from "../../contract/question-sets/jobs.ts"
import { percentText } from "../../scoring/evaluation.ts"
import type { TaughtCascade } from "../../scoring/teach/artefact.ts"
import type {
  CascadeAnswer,
  CascadeExpectation,
  CascadeQuestion,
  CascadeRequest,
} from "../../scoring/teach/cascade.ts"
import type { StagedTeaching } from "../../scoring/teach/teach.ts"
import type { JobContext } from "./jobs.ts"
import { fitCascadeInProcess } from "./teach-client.ts"
import type { Plan, Readings, StageReadings } from "./teach-readings.ts"

/** What was found for a question, or why nothing was. */
export type Found = StagedTeaching | { readonly reason: string }

interface CascadeTeaching {
  readonly cascade: CascadeRule
  readonly plans: readonly Plan[]
  /** Of each plan. */
  readonly found: readonly Found[]
  readonly readings: Readings
  readonly input: { readonly target_accuracy: number | null }
}

export interface FittedStages {
  /** Of each plan, with what the cascade needs. */
  readonly found: readonly Found[]
  /** By the name of a question that was taught. */
  readonly questions: ReadonlyMap<string, TaughtQuestionCascade>
  readonly report: TaughtCascadeReport
}

/** Null where no question was taught. */
export async function fitCascade(
  { signal }: JobContext,
  { cascade, plans, found, readings, input }: CascadeTeaching,
): Promise<FittedStages | null> {
  const taught = plans.flatMap((plan, at) => {
    const own = found[at]
    return own && !("reason" in own) ? [{ plan, own }] : []
  })
  if (taught.length === 0) return null
  const { stages } = readings
  const questions = taught.map(({ plan: { given } }): CascadeQuestion => {
    const inForce = given.threshold ?? cascade.thresholds[given.type]
    return {
      target: given.target_accuracy ?? input.target_accuracy,
      thresholds: stages.slice(1).map(() => inForce),
    }
  })
  const requests = requestsOf(taught, stages)
  const { thresholds, expected } = await fitCascadeInProcess(
    { stageCount: stages.length, questions, requests },
    signal,
  )
  const versions = stages.map(({ model, modelVersion }) => ({ model: model.sku, modelVersion }))
  const taughtAt = new Map(taught.map(({ plan }, at) => [plan, at]))
  return {
    found: plans.map((plan, index) => {
      const own = found[index]
      const at = taughtAt.get(plan)
      if (!own || "reason" in own || at === undefined) return own ?? { reason: "" }
      const fitted = questions[at]?.target === null ? null : (thresholds[at] ?? null)
      return withCascade(own, { stages: versions, thresholds: fitted, blends: own.blends }, expected, at)
    }),
    questions: new Map(
      taught.map(({ plan, own }, at) => [
        plan.given.name,
        {
          ...toQuestionCascade(questions[at]?.target ?? null, thresholds[at] ?? [], expected.questions[at]),
          blends: [...own.blends],
        },
      ]),
    ),
    report: toReport(stages, expected),
  }
}

interface TaughtPlan {
  readonly plan: Plan
  readonly own: StagedTeaching
}

/** The examples as requests: each asks the questions that it has labels for. */
function requestsOf(
  taught: readonly TaughtPlan[],
  stages: readonly [StageReadings, ...StageReadings[]],
): CascadeRequest[] {
  const outcomes = taught.map(({ own }) => new Map(own.rows.map((row) => [row.hash, row])))
  const examples = new Map(
    taught.flatMap(({ plan }) => [...plan.examples.values()].map(({ example }) => [example.id, example])),
  )
  return [...examples.values()].flatMap((example) => {
    const read = stages.map(({ rows }) => rows.get(example.id))
    const answers = taught.flatMap(({ plan }, question): CascadeAnswer[] => {
      const row = plan.examples.has(example.id) ? outcomes[question]?.get(example.inputHash) : undefined
      if (!row) return []
      const costs = read.map((stage) => stage?.cost.questions.get(plan.given.name) ?? 0)
      return [{ question, confidences: row.confidences, hits: row.hits, costs }]
    })
    // Of a text that only a teacher has labelled nothing is judged.
    if (answers.length === 0) return []
    return [{ split: example.split, evidenceCosts: read.map((stage) => stage?.cost.evidence ?? 0), answers }]
  })
}

/** A promise is then made of what the cascade answers. */
function withCascade(
  { artefact, ...rest }: StagedTeaching,
  cascade: TaughtCascade,
  expected: CascadeExpectation,
  at: number,
): StagedTeaching {
  const isHeldOut = expected.measuredOn === "held_out"
  const heldOutAnswers = isHeldOut ? (expected.questions[at]?.answers ?? []) : artefact.heldOutAnswers
  return { artefact: { ...artefact, cascade, heldOutAnswers }, ...rest }
}

function toQuestionCascade(
  target: number | null,
  thresholds: readonly number[],
  expected: CascadeExpectation["questions"][number] | undefined,
): Omit<TaughtQuestionCascade, "blends"> {
  return {
    target,
    thresholds: [...thresholds],
    accuracy: expected?.accuracy.value ?? 0,
    accuracy_low: expected?.accuracy.low ?? 0,
    rows: expected?.rows ?? 0,
    asked: [...(expected?.asked ?? [])],
  }
}

function toReport(stages: readonly StageReadings[], expected: CascadeExpectation): TaughtCascadeReport {
  const times = stages.map(meanMs)
  const latencyMs = times.reduce((sum, ms, stage) => sum + ms * (expected.asked[stage] ?? 0), 0)
  /** Of models that charge for time. */
  const timeCosts = stages.map(
    ({ model }, stage) => Number(model.prices.millisecondTicks) * (times[stage] ?? 0),
  )
  const cost = timeCosts.reduce((sum, own, stage) => sum + own * (expected.asked[stage] ?? 0), expected.cost)
  const { accuracy, requests } = expected
  const further = stages
    .slice(1)
    .map(
      ({ model }, at) => `${model.sku} is asked in ${percentText(expected.asked[at + 1] ?? 0)} of requests`,
    )
  return {
    measured_on: expected.measuredOn === "held_out" ? "held_out" : "cross_validated",
    requests,
    accuracy: accuracy.value,
    accuracy_low: accuracy.low,
    cost_usd: usdOf(cost),
    latency_ms: tenths(latencyMs),
    stages: stages.map(({ model }, stage) => ({
      model: model.sku,
      asked: expected.asked[stage] ?? 0,
      accuracy: expected.stages[stage]?.accuracy.value ?? 0,
      accuracy_low: expected.stages[stage]?.accuracy.low ?? 0,
      cost_usd: usdOf((expected.stages[stage]?.cost ?? 0) + (timeCosts[stage] ?? 0)),
      latency_ms: tenths(times[stage] ?? 0),
    })),
    sentence:
      `Right ${percentText(accuracy.value)} of the time, at least ${percentText(accuracy.low)} with 95% confidence ` +
      `(${requests} ${expected.measuredOn === "held_out" ? "held-out" : "cross-validated"} requests); ${further.join(", ")}; ` +
      `$${usdOf(cost)} and ${tenths(latencyMs)} ms a request`,
  }
}

const meanMs = ({ rows }: StageReadings): number =>
  [...rows.values()].reduce((sum, { ms }) => sum + ms, 0) / Math.max(1, rows.size)

const usdOf = (ticks: number): string => usdText(BigInt(Math.round(ticks)))

const tenths = (ms: number): number => Math.round(ms * 10) / 10
