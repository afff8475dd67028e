/**
 * Shadows: another version or model answers a share of the requests beside the published one, unseen. What it costs is charged as any
 * request, and held to the shadow's own budget of the day; limits and budgets of the caller's key are for what the caller asks.
 */
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Ticks } from "../../base/money.ts"
import type { Principal } from "../../contract/access.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import { shadowDays } from "../../store/cascade-days.ts"
import { insertReviewItems } from "../../store/content/review.ts"
import { encodeVerdict, insertShadowResults, type ShadowResult } from "../../store/question-sets/jobs.ts"
import { insertTeacherAnswers, type TeacherAnswer } from "../../store/question-sets/teacher-answers.ts"
import type { Database } from "../../store/sql.ts"
import type { CascadeDays, CountedStage, DayHold } from "../cascade-days.ts"
import { isExample } from "./policy.ts"
import { isSampled } from "../content/content-logger.ts"
import { type AskVersionDeps, askVersion } from "./score-texts.ts"
import type { FoundSet, Sets } from "./sets.ts"
import { teacherAnswers } from "./teacher-answers.ts"
import type { Verdict } from "../classification/classification.ts"
import type { AskedVersion } from "./version.ts"

export interface ShadowDeps extends AskVersionDeps {
  readonly database: Database
  /** Counts shadows beside cascades. */
  readonly days: Pick<CascadeDays, "count" | "hold">
  readonly sets: Pick<Sets, "find">
  readonly ids: Ids
  readonly log: Log
}

/** A request that was answered. */
interface AnsweredRequest {
  readonly found: FoundSet
  readonly organizationId: string
  readonly principal: Principal
  readonly sequenceId: string
  readonly evidence: string
  /** What splits are sticky by. */
  readonly key: string
  readonly verdicts: readonly Verdict[]
  /** Whether its evidence is kept, so that people can review where the shadow differs, and the set can learn from it. */
  readonly isKept: boolean
  /** Of what is kept: what later stages of a cascade answered. */
  readonly escalated: readonly TeacherAnswer[]
}

export interface Shadows {
  /** Returns at once; the shadow answers later, if at all. What larger models answered about kept requests is remembered. */
  observe(answered: AnsweredRequest): void
  /** Waits for those that are at work. */
  close(): Promise<void>
}

/** What is more than this is left out: a shadow must not stand in the way of requests. */
const runningMax = 4

export function createShadows(deps: ShadowDeps): Shadows {
  const running = new Set<Promise<void>>()
  const stop = new AbortController()
  const start = (what: string, work: Promise<void>): void => {
    const started = work
      .catch((error: unknown) => {
        if (!stop.signal.aborted) deps.log.warn({ err: error }, `${what} of a question set failed`)
      })
      .finally(() => running.delete(started))
    running.add(started)
  }
  return {
    observe(answered) {
      if (answered.escalated.length > 0 && running.size < runningMax)
        start("what a cascade learnt", remember(deps, answered, answered.escalated))
      const { shadow } = answered.found
      if (!shadow || !isSampled("shadow", answered.sequenceId, shadow.share)) return
      if (running.size >= runningMax) return countUnanswered(deps, answered, answered.verdicts.length)
      start("a shadow", run(deps, answered, stop.signal))
    },
    close: async () => {
      stop.abort(new Error("The server is stopping"))
      await Promise.all(running)
    },
  }
}

async function run(deps: ShadowDeps, answered: AnsweredRequest, stopping: AbortSignal): Promise<void> {
  const { found, organizationId, principal, sequenceId, evidence, key, verdicts } = answered
  const { version: published, shadow } = found
  if (!shadow) return
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(deps.timeoutMs)])
  const other = await shadowOf(deps, organizationId, published, shadow)
  const questionNames = other.questions
    .map(({ question }) => question.name ?? "")
    .filter((name) => verdicts.some((verdict) => verdict.name === name))
  // There is nothing to compare, and to name none would ask all.
  if (questionNames.length === 0) return
  const day = new ShadowDay(deps, answered, shadow.costMaxDay)
  const caller = {
    callSource: "shadow",
    principal: withoutLimits(principal),
    organizationId,
    requestId: sequenceId,
    isCharged: true,
    admits: async (most: Ticks) => await day.hold(most),
    onUnusable: (costTicks: Ticks) => day.countUnusable(costTicks),
  } as const
  const asked = askVersion(deps, caller, other, { evidence, questionNames, key }, signal)
  const shadowed = await asked.catch((error: unknown) => {
    day.countFailed(questionNames.length)
    if (error instanceof BudgetSpent) return null
    throw error
  })
  if (!shadowed) return
  const results = shadowed.answers.flatMap(({ verdict }): ShadowResult[] => {
    const own = verdicts.find(({ name }) => name === verdict.name)
    if (!own) return []
    return [
      {
        question: verdict.name,
        version: published.number,
        shadowVersion: other.number,
        shadowModel: other.model,
        verdict: encodeVerdict(own.value),
        shadowVerdict: encodeVerdict(verdict.value),
        confidence: own.confidence,
        shadowConfidence: verdict.confidence,
      },
    ]
  })
  day.countAnswered(results, shadowed.costTicks)
  const at = new Date(deps.clock.nowMs())
  const keptMax = questionSetLimits.shadowResultsMax
  await insertShadowResults(deps.database, published.setId, results, { at, keptMax })
  if (!answered.isKept || !isExample(evidence)) return
  await askReviewers(deps, answered, results, at)
  // Another version of the questions, by the same model, teaches nothing.
  if (shadow.model !== null)
    await remember(deps, answered, teacherAnswers({ seqId: sequenceId, version: other.number }, shadowed, 0))
}

const remember = async (
  { database }: Pick<ShadowDeps, "database">,
  { found }: OfSet,
  answers: readonly TeacherAnswer[],
): Promise<void> => await insertTeacherAnswers(database, found.version.setId, answers)

/** The budget of the day is spent: nothing went wrong. */
class BudgetSpent extends Error {}

type OfSet = Pick<AnsweredRequest, "found" | "organizationId">

const countedAs = ({ found, organizationId }: OfSet) => ({
  organizationId,
  cascade: shadowDays(found.version.setId),
  // The published version is the first.
  stage: 1,
})

const countUnanswered = ({ days }: Pick<ShadowDeps, "days">, of: OfSet, questions: number): void =>
  days.count({ ...countedAs(of), questions: 0, unanswered: questions, costTicks: 0n })

/** What one answer takes of what the shadow may cost in a day. */
class ShadowDay {
  readonly #deps: Pick<ShadowDeps, "days">
  readonly #named: Pick<CountedStage, "organizationId" | "cascade" | "stage">
  readonly #costMax: Ticks
  #hold: DayHold | null = null
  /** What is paid all the same. */
  #unusableTicks = 0n

  constructor(deps: Pick<ShadowDeps, "days">, of: OfSet, costMax: Ticks) {
    this.#deps = deps
    this.#named = countedAs(of)
    this.#costMax = costMax
  }

  /** Where the store cannot tell what was spent, nothing more is. */
  async hold(most: Ticks): Promise<void> {
    this.#hold = await this.#deps.days.hold(this.#named, most, this.#costMax)
    if (!this.#hold) throw new BudgetSpent()
  }

  countUnusable(costTicks: Ticks): void {
    this.#unusableTicks += costTicks
  }

  countFailed(questions: number): void {
    this.#count({ questions: 0, unanswered: questions }, 0n)
  }

  countAnswered(results: readonly ShadowResult[], costTicks: Ticks): void {
    this.#count({ questions: results.length, changed: results.filter(isDifferent).length }, costTicks)
  }

  #count(counted: Pick<CountedStage, "questions" | "changed" | "unanswered">, answeredTicks: Ticks): void {
    const costTicks = answeredTicks + this.#unusableTicks
    this.#hold?.(costTicks)
    this.#deps.days.count({ ...this.#named, ...counted, costTicks, isHeld: this.#hold !== null })
  }
}

function withoutLimits(principal: Principal): Principal {
  const { keyLimits, ...unlimited } = principal
  return keyLimits ? unlimited : principal
}

const isDifferent = ({ verdict, shadowVerdict }: ShadowResult): boolean => verdict !== shadowVerdict

async function askReviewers(
  { database, ids }: ShadowDeps,
  { found, organizationId, sequenceId }: AnsweredRequest,
  results: readonly ShadowResult[],
  createdAt: Date,
): Promise<void> {
  const differing = results.filter(isDifferent)
  await insertReviewItems(
    database,
    differing.map(({ question, version }) => ({
      id: ids.next("rev"),
      setId: found.version.setId,
      organizationId,
      seqId: sequenceId,
      question,
      version,
      reason: "shadow_differs",
      secondLook: false,
      createdAt,
    })),
  )
}

async function shadowOf(
  { sets }: ShadowDeps,
  organizationId: string,
  published: AskedVersion,
  shadow: { readonly version: number | null; readonly model: string | null },
): Promise<AskedVersion> {
  const reference = { name: published.setId, version: String(shadow.version ?? published.number) }
  const { version } = await sets.find(organizationId, reference)
  // A model that is named is the one to be tried, whatever was taught on another.
  if (shadow.model === null) return version
  // Nor does a calibration fit it.
  const questions = version.questions.map((one) => ({ ...one, calibration: null }))
  return { ...version, model: shadow.model, taughtOn: [], questions }
}
