/**
 * The stages of a decision. A plain model is one stage of one model. A cascade asks the first model everything and each next one
 * only what is still doubtful; what a model was sure of is not asked again, so its answer is that of the model alone. A reader
 * makes answers of margins, and says what is doubtful about them.
 */
import { elementAt } from "../base/lists.ts"
import type { Model } from "../base/catalog.ts"
import { type Ticks, ticksOfUsd } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import { type CascadeRule, stagesHeader, warningHeader } from "../contract/platform/virtual-models.ts"
import type { Branch } from "../engine/branch.ts"
import type { EvidenceReading } from "../engine/engine.ts"
import { answerConfidence } from "../scoring/teach/apply.ts"
import type { RecordedStage } from "../store/journal/record.ts"
import { type Question, branchCount, marginsOf } from "./classification/classification.ts"
import type { Resolved } from "./organization-access.ts"
import { isShortOfCredit } from "./reservations.ts"
import { type Usage, costOf, noUsage } from "./sequence-record.ts"
import {
  type AskStage,
  type ScoreDeps,
  type ScoreRequest,
  type StageAnswer,
  firstThatServes,
  scoreAt,
  tokensMost,
} from "./cascade-stages.ts"

/** What is made of the margins of a question, and whether another model should be asked. */
export interface StageReader<Answer> {
  /** `at` are the questions that the margins are of; `isFirst` says whether the first model of all read them. */
  read(at: readonly number[], margins: Float64Array, read: ReadStage): readonly Answer[]
  isDoubtful(answer: Answer, at: number, cascade: CascadeRule): boolean
}

interface ReadStage {
  readonly reading: EvidenceReading | null
  readonly isFirst: boolean
  /** From zero. */
  readonly stage: number
}

export interface StagedAnswers<Answer> {
  /** One for each question, of the last stage that was asked it. */
  readonly answers: readonly Answer[]
  /** Of the last stage that answered. */
  readonly usage: Usage
  readonly model: Model
  /** Of all stages. */
  readonly costTicks: Ticks
}

export interface StagedRequest extends Omit<ScoreRequest, "model" | "admit"> {
  readonly resolved: Resolved
  readonly questions: readonly Question[]
}

export async function scoreStages<Answer>(
  deps: ScoreDeps,
  request: StagedRequest,
  reader: StageReader<Answer>,
): Promise<StagedAnswers<Answer>> {
  const { resolved, questions, call } = request
  const { sequence } = call
  const { signal } = call.request
  const { virtual, cascade } = resolved
  const [firstStage, ...later] = resolved.stages
  const all = questions.map((_, at) => at)
  const askStage: AskStage = ({ models, questions: count, branches, reading, admit }, until) =>
    firstThatServes(
      sequence,
      { models, virtual, questions: count },
      {
        signal: until,
        work: ({ model }) =>
          scoreAt(
            deps,
            {
              ...request,
              branches: branches ?? request.branches,
              reading: reading ?? request.reading,
              admit: admit && ((most) => admit(model, most)),
              model,
            },
            until,
          ),
      },
    )
  const further = cascade ? new FurtherStages({ ...deps, request, cascade, stages: later, askStage }) : null
  const admit = further
    ? (model: Model, most: Usage): Promise<void> => further.reserveAll(model, most)
    : undefined
  const first = await askStage({ models: firstStage, questions: all.length, admit }, signal)
  const reading = { reading: first.scored.reading, isFirst: first.model === firstStage[0], stage: 0 }
  const answers = [...reader.read(all, first.scored.margins, reading)]
  if (virtual === null) {
    const { usage } = first.scored
    return { answers, usage, model: first.model, costTicks: costOf(first.model.prices, usage) }
  }
  sequence.endStage("success", first.scored.usage)
  let last = first
  if (further && cascade) {
    further.countAnswered(first)
    const isDoubtful = (at: number): boolean => reader.isDoubtful(elementAt(answers, at), at, cascade)
    let doubtful = all.filter(isDoubtful)
    for (let stage = 0; stage < later.length && doubtful.length > 0; stage++) {
      const answered = await further.ask(stage, doubtful, signal)
      if (!answered) break
      last = answered
      const read = reader.read(doubtful, answered.scored.margins, {
        reading: answered.scored.reading,
        isFirst: false,
        stage: stage + 1,
      })
      for (const [index, at] of doubtful.entries()) answers[at] = elementAt(read, index)
      doubtful = doubtful.filter(isDoubtful)
    }
  }
  sequence.name(last.model.sku)
  sequence.describe({ branches: request.branches.length })
  tellStages((name, value) => call.header(name, value), sequence.stages)
  return { answers, usage: last.scored.usage, model: last.model, costTicks: sequence.spentTicks }
}

export interface PlainAnswer {
  readonly margins: Float64Array
}

export function plainReader(questions: readonly Question[]): StageReader<PlainAnswer> {
  return {
    read: (at, margins) => {
      const own = marginsOf(questions, at, margins)
      return own.map((one) => ({ margins: one }))
    },
    isDoubtful: ({ margins }, at, { thresholds }) => {
      const { type } = elementAt(questions, at)
      return answerConfidence(type, margins) < thresholds[type]
    },
  }
}

/** The margins of all questions, as one request has them. */
export function joinMargins(answers: readonly PlainAnswer[]): Float64Array {
  const joined = new Float64Array(answers.reduce((sum, { margins }) => sum + margins.length, 0))
  let start = 0
  for (const { margins } of answers) {
    joined.set(margins, start)
    start += margins.length
  }
  return joined
}

/** A stage of which nothing more is asked: the budget is spent. Not an error of the stage. */
class BudgetSpent extends Error {}

interface FurtherDeps extends Pick<ScoreDeps, "clock" | "timeoutMs"> {
  readonly request: StagedRequest
  readonly cascade: CascadeRule
  readonly stages: Resolved["stages"][number][]
  readonly askStage: AskStage
}

export class FurtherStages {
  readonly #deps: FurtherDeps
  readonly #costMax: Ticks | null
  /** Why no further stage can be paid. */
  #unpaid: Fault | null = null
  /** What the stages that answered cost, also where it is not charged. */
  #spentTicks: Ticks = 0n

  constructor(deps: FurtherDeps) {
    const { cost_max_usd } = deps.cascade
    this.#deps = deps
    this.#costMax = cost_max_usd === null ? null : ticksOfUsd(cost_max_usd)
  }

  /** Reserves what the first stage costs and the most that all others can; without enough credit, and if so configured, the first alone. */
  async reserveAll(model: Model, most: Usage): Promise<void> {
    const {
      isCharged,
      call: { sequence },
    } = this.#deps.request
    if (!isCharged) return sequence.name(model.sku)
    const own = costOf(model.prices, most)
    // Of a model of the first stage that was dearer, and failed.
    this.#unpaid = null
    try {
      await sequence.reserve(model, most, this.#mostTicks(0, own))
    } catch (error) {
      const isShort = isShortOfCredit(error)
      if (!isShort || this.#deps.cascade.on_failure === "error") throw error
      await sequence.reserve(model, most)
      this.#unpaid = error
    }
  }

  countAnswered({ model, scored }: StageAnswer): void {
    this.#spentTicks += costOf(model.prices, scored.usage)
  }

  /** Null where the answers so far stand: the budget is spent, or the stage failed and its failure is only told. */
  async ask(stage: number, at: readonly number[], signal: AbortSignal): Promise<StageAnswer | null> {
    const { call } = this.#deps.request
    const { sequence } = call
    try {
      const answered = await this.#run(stage, at, signal)
      sequence.endStage("success", answered.scored.usage)
      this.countAnswered(answered)
      return answered
    } catch (error) {
      signal.throwIfAborted()
      const isSpent = error instanceof BudgetSpent
      const code = isSpent ? "budget_spent" : error instanceof Fault ? error.code : "internal"
      sequence.endStage(code, noUsage)
      if (!isSpent && (this.#deps.cascade.on_failure === "error" || !(error instanceof Fault))) throw error
      const model = this.#deps.stages[stage]?.at(-1)?.sku ?? ""
      call.header(warningHeader, `${headerToken(model)};code=${code};questions=${at.length}`)
      return null
    }
  }

  async #run(stage: number, at: readonly number[], signal: AbortSignal): Promise<StageAnswer> {
    if (this.#unpaid) throw this.#unpaid
    const leftMs = this.#leftMs()
    if (leftMs !== null && leftMs <= 0) throw new BudgetSpent()
    const timer = leftMs === null ? null : AbortSignal.timeout(Math.ceil(leftMs))
    const either = timer ? AbortSignal.any([signal, timer]) : signal
    try {
      return await this.#deps.askStage(
        {
          models: this.#deps.stages[stage] ?? [],
          questions: at.length,
          branches: this.#branchesOf(at),
          // Vectors are of the first stage; the version tells whether what was fitted fits this one.
          reading: this.#deps.request.reading && { vector: false },
          admit: (model, most) => this.#admit(stage, model, most),
        },
        either,
      )
    } catch (error) {
      if (signal.aborted || timer?.aborted !== true) throw error
      throw new BudgetSpent()
    }
  }

  async #admit(stage: number, model: Model, most: Usage): Promise<void> {
    const {
      isCharged,
      call: { sequence },
    } = this.#deps.request
    const own = costOf(model.prices, most)
    const spent = this.#spentTicks + own
    if (this.#costMax !== null && spent > this.#costMax) throw new BudgetSpent()
    if (!isCharged) return sequence.name(model.sku)
    const models: readonly Model[] = this.#deps.stages[stage] ?? []
    const next = this.#dearest(models.slice(models.indexOf(model) + 1))
    // Where it fails it is free, and one that is dearer may answer instead.
    const dearer = next > own ? next - own : 0n
    await sequence.admitStage(model, most, this.#mostTicks(stage + 1, spent, dearer))
  }

  /** The most that stages from this one on can cost when so much is spent, and so much more may be. */
  #mostTicks(from: number, spent: Ticks, more: Ticks = 0n): Ticks {
    const sum = this.#deps.stages.slice(from).reduce((total, models) => total + this.#dearest(models), more)
    if (this.#costMax === null) return sum
    const left = this.#costMax > spent ? this.#costMax - spent : 0n
    return sum < left ? sum : left
  }

  /** What the dearest of the models can cost: asked everything. */
  #dearest(models: readonly Model[]): Ticks {
    const { evidence, branches } = this.#deps.request
    const inputTokens = tokensMost({ evidence, branches })
    const most = { ...noUsage, inputTokens, executionMs: this.#deps.timeoutMs }
    return models.reduce((dearest, { prices }) => {
      const ticks = costOf(prices, most)
      return ticks > dearest ? ticks : dearest
    }, 0n)
  }

  #leftMs(): number | null {
    const { latency_max_ms } = this.#deps.cascade
    return latency_max_ms === null
      ? null
      : latency_max_ms - (this.#deps.clock.nowMs() - this.#deps.request.call.request.startedMs)
  }

  /** The branches of some of the questions, in their order. */
  #branchesOf(at: readonly number[]): Branch[] {
    const { questions, branches } = this.#deps.request
    const wanted = new Set(at)
    let start = 0
    return questions.flatMap((question, index) => {
      const end = start + branchCount(question)
      const own = wanted.has(index) ? branches.slice(start, end) : []
      start = end
      return own
    })
  }
}

/** `answering` is the model whose stage is still open. */
export function tellStages(
  header: (name: string, value: string) => void,
  stages: readonly RecordedStage[],
  answering: Model | null = null,
): void {
  const told = stages.map(({ model, result, questions, ms, ...used }) =>
    [
      headerToken(model),
      `result=${result}`,
      ...(questions === null ? [] : [`questions=${questions}`]),
      `tokens=${used.input_tokens + used.cached_input_tokens + used.output_tokens}`,
      `ms=${ms}`,
    ].join(";"),
  )
  header(stagesHeader, [...told, ...(answering ? [headerToken(answering.sku)] : [])].join(", "))
}

/** Names may have letters of any alphabet; headers may not. */
export const headerToken = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._/:-]/gu, (character) => encodeURIComponent(character))
