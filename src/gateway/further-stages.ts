/** The stages of a cascade after its first: what may be asked of them within the budgets of a request and of a day, and how it is counted. */
import type { Model } from "../base/catalog.ts"
import { type Ticks, ticksOfUsd } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import { type CascadeRule, warningHeader } from "../contract/platform/virtual-models.ts"
import type { Branch } from "../engine/branch.ts"
import type { ScoreWork } from "../engine/engine.ts"
import { StoreUnavailable } from "../store/sql.ts"
import type { CountedStage, DayHold } from "./cascade-days.ts"
import { branchCount, type Question } from "./classification/classification.ts"
import { costOf, noUsage, type Usage } from "./meter.ts"
import type { Resolved } from "./organization-access.ts"
import { isShortOfCredit } from "./reservations.ts"
import { type Scored, type ScoreDeps, type ScoreRequest, sizeMost } from "./score.ts"
import { headerToken } from "./stages.ts"

export interface StagedRequest extends Omit<ScoreRequest, "model" | "admit"> {
  readonly resolved: Resolved
  readonly questions: readonly Question[]
  /** Told what an answer cost that cannot be used, whichever model answers instead. */
  readonly onUnusable?: ((costTicks: Ticks) => void) | undefined
}

export interface StageAnswer {
  readonly model: Model
  readonly scored: Scored
}

/** Asks one stage of a decision: some branches, read otherwise than the request says where it is told so. */
export type AskStage = (
  stage: Partial<Pick<ScoreWork, "branches" | "reading">> & {
    readonly models: readonly Model[]
    /** How many they are asked. */
    readonly questions: number
    /** Admits what a model may use, instead of a reservation of its own. */
    readonly admit?: ((model: Model, most: Usage) => Promise<void>) | undefined
  },
  signal: AbortSignal,
) => Promise<StageAnswer>

/** A stage of which nothing more is asked: the budget is spent. Not an error of the stage. */
class BudgetSpent extends Error {}

interface FurtherDeps extends ScoreDeps {
  readonly request: StagedRequest
  readonly cascade: CascadeRule
  readonly stages: Resolved["stages"][number][]
  readonly askStage: AskStage
}

/** What a cascade sends on after its first stage, and what that may cost. */
export class FurtherStages {
  readonly #deps: FurtherDeps
  readonly #costMax: Ticks | null
  readonly #dayMax: Ticks | null
  readonly #named: { readonly organizationId: string; readonly cascade: string }
  /** What the stage that is asked may cost, of the day's. */
  #hold: DayHold | null = null
  /** Why no further stage can be paid. */
  #unpaid: Fault | null = null
  /** What all that was answered cost, also where it is not charged. */
  #spentTicks: Ticks = 0n
  /** Of the stage that is asked: what answers cost that cannot be used. */
  #unusableTicks: Ticks = 0n

  constructor(deps: FurtherDeps) {
    const { cost_max_usd, cost_max_day_usd } = deps.cascade
    const { call, resolved } = deps.request
    this.#deps = deps
    this.#named = {
      organizationId: call.organizationId,
      cascade: resolved.cascadeName ?? resolved.virtual ?? "",
    }
    this.#dayMax = cost_max_day_usd === null ? null : ticksOfUsd(cost_max_day_usd)
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

  tellAnswered(
    stage: number,
    { model, scored }: StageAnswer,
    found: Pick<CountedStage, "questions" | "changed">,
  ): void {
    this.#tell({ stage, ...found }, costOf(model.prices, scored.usage))
  }

  /** With what models cost that were asked before the one that answered. */
  #tell(counted: Omit<CountedStage, "organizationId" | "cascade" | "costTicks">, ticks: Ticks): void {
    const costTicks = ticks + this.#unusableTicks
    this.#unusableTicks = 0n
    // The first stage is asked whatever the day has left.
    const isHeld = counted.stage > 0 && this.#dayMax !== null
    this.#deps.cascadeDays?.count({ ...this.#named, ...counted, costTicks, isHeld })
  }

  countUnusable(costTicks: Ticks): void {
    this.#spentTicks += costTicks
    this.#unusableTicks += costTicks
    this.#settleHold(costTicks)
  }

  #settleHold(costTicks: Ticks): void {
    this.#hold?.(costTicks)
    this.#hold = null
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
      this.#settleHold(costOf(answered.model.prices, answered.scored.usage))
      return answered
    } catch (error) {
      this.#settleHold(0n)
      this.#tell({ stage: stage + 1, questions: 0, unanswered: at.length }, 0n)
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
    await this.#holdOfDay(own)
    if (!isCharged) return sequence.name(model.sku)
    const models: readonly Model[] = this.#deps.stages[stage] ?? []
    const next = this.#dearest(models.slice(models.indexOf(model) + 1))
    // Where it fails it is free, and one that is dearer may answer instead.
    const dearer = next > own ? next - own : 0n
    await sequence.admitStage(model, most, this.#mostTicks(stage + 1, spent, dearer))
  }

  /** Where the store cannot tell what was spent, nothing more is. */
  async #holdOfDay(ticks: Ticks): Promise<void> {
    const { cascadeDays } = this.#deps
    if (this.#dayMax === null || !cascadeDays) return
    // Of a model of the same stage that failed.
    this.#settleHold(0n)
    this.#hold = await cascadeDays.hold(this.#named, ticks, this.#dayMax).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return null
      throw error
    })
    if (this.#hold === null) throw new BudgetSpent()
  }

  /** The most that stages from this one on can cost when so much is spent, and so much more may be. */
  #mostTicks(from: number, spent: Ticks, more: Ticks = 0n): Ticks {
    const sum = this.#deps.stages.slice(from).reduce((total, models) => total + this.#dearest(models), more)
    if (this.#costMax === null) return sum
    const left = this.#costMax > spent ? this.#costMax - spent : 0n
    return sum < left ? sum : left
  }

  #dearest(models: readonly Model[]): Ticks {
    return dearestOf(this.#deps, this.#deps.request, models)
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

type PricedWork = Pick<ScoreWork, "evidence" | "branches">

/** What the dearest of the models can cost: asked everything. */
function dearestOf(
  { router, timeoutMs }: Pick<ScoreDeps, "router" | "timeoutMs">,
  work: PricedWork,
  models: readonly Model[],
): Ticks {
  return models.reduce((dearest, { sku, prices }) => {
    const ticks = costOf(prices, { ...noUsage, ...sizeMost(router, sku, work), executionMs: timeoutMs })
    return ticks > dearest ? ticks : dearest
  }, 0n)
}

/** What all stages can cost together, known before any is asked. */
export const mostOfStages = (
  deps: Pick<ScoreDeps, "router" | "timeoutMs">,
  work: PricedWork,
  { stages }: Pick<Resolved, "stages">,
): Ticks => stages.reduce((sum, models) => sum + dearestOf(deps, work, models), 0n)
