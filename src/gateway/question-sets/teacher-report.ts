/** What the answers of a larger model were worth to a question that learnt from them, and what is saved by asking it no more. */
import { ticksOfUsd, usdText } from "../../base/money.ts"
import type { TeacherReport } from "../../contract/question-sets/distil.ts"
import type { TeacherLabel } from "../../contract/question-sets/examples.ts"
import { plural } from "../../base/plural.ts"
import { percentText } from "../../scoring/evaluation.ts"
import type { TaughtArtefact } from "../../scoring/teach/artefact.ts"
import type { PromiseOutcome } from "../../scoring/teach/promise.ts"
import type { ReadRow } from "./teach-readings.ts"

/** Of one question, over all texts that it has answered. */
export class TeacherTally {
  readonly models = new Set<string>()
  /** Answers to other words of the question. */
  outdated = 0
  judged = 0
  right = 0
  #priced = 0
  #ticks = 0n

  /** `person` is null where no person has labelled the text. */
  count({ model, cost_usd }: TeacherLabel, label: number, person: number | null): void {
    this.models.add(model)
    if (person !== null) {
      this.judged++
      if (person === label) this.right++
    }
    if (cost_usd === null) return
    this.#priced++
    this.#ticks += ticksOfUsd(cost_usd)
  }

  /** Of an answer; null where no answer told it. */
  get meanTicks(): number | null {
    return this.#priced === 0 ? null : Number(this.#ticks) / this.#priced
  }
}

interface Distilled {
  readonly tally: TeacherTally
  readonly taught: TaughtArtefact
  readonly promise: PromiseOutcome | null
  /** What the set's own model was asked. */
  readonly rows: readonly ReadRow[]
  readonly question: string
}

/** Undefined where no other model has answered. */
export function teacherReport({
  tally,
  taught,
  promise,
  rows,
  question,
}: Distilled): TeacherReport | undefined {
  if (tally.models.size === 0 && tally.outdated === 0) return undefined
  const models = [...tally.models].toSorted()
  const share = promise?.isPromised === true ? promise.coverage : null
  const before = tally.meanTicks
  const own = mean(
    rows.map(({ cost }) => cost.evidence / cost.questions.size + (cost.questions.get(question) ?? 0)),
  )
  const [costBefore, costAfter] = [before, before === null ? null : own + (1 - (share ?? 0)) * before].map(
    ofThousand,
  )
  const { judged, right, outdated } = tally
  return {
    models,
    labels: taught.teacher?.rows ?? 0,
    weight: taught.teacher?.weight ?? 0,
    outdated,
    judged,
    right,
    share,
    cost_before_usd: costBefore ?? null,
    cost_after_usd: costAfter ?? null,
    sentence: [
      ...(models.length > 0 ? [shareSentence(models, share)] : []),
      ...(share !== null && costBefore != null ? [`1,000 cost $${costAfter} instead of $${costBefore}`] : []),
      ...(judged > 0 ? [`it agrees with people on ${right} of ${judged} texts`] : []),
      ...(outdated > 0
        ? [
            `${plural(outdated, "answer")} to other words of the question ${outdated === 1 ? "is" : "are"} left out; distil again to ask anew`,
          ]
        : []),
    ].join("; "),
  }
}

const shareSentence = (models: readonly string[], share: number | null): string =>
  share === null
    ? `Nothing is promised yet: ${models.join(", ")} would have to answer everything`
    : `${percentText(share)} of decisions need no ${models.join(", ")}`

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

const ofThousand = (ticks: number | null): string | null =>
  ticks === null ? null : usdText(BigInt(Math.round(1000 * ticks)))
