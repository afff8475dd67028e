/** Scores texts for a job or a shadow of a question set, a few at a time, each recorded and charged as a request, stage by stage as a live one. */
import type { Model } from "../../base/catalog.ts"
import type { Ticks } from "../../base/money.ts"
import type { Principal } from "../../contract/access.ts"
import type { CallSource, RequestFacts } from "../../contract/endpoint.ts"
import { type ScoreWork, unusableIn } from "../../engine/engine.ts"
import type { Classification, Verdict } from "../classification/classification.ts"
import { detectLanguage, languageToRead } from "../language.ts"
import { scoreStages, type StagedAnswers } from "../decision-stages.ts"
import { mostOfStages } from "../further-stages.ts"
import { score, type ScoreDeps, type Scored } from "../score.ts"
import { costOf, type Meter, type Usage } from "../meter.ts"
import { type MeteredCall, runMetered } from "../metered-call.ts"
import type { ModelResolver } from "../organization-access.ts"
import { retryWhileFull } from "../retry-while-full.ts"
import { type SetAnswer, setReader } from "./policy.ts"
import { answerSet, type AskedQuestion, type AskedVersion, selectQuestions } from "./version.ts"

export interface TextScorerDeps extends ScoreDeps {
  readonly meter: Meter
}

/** Who asks, and as what it is recorded. */
export interface TextCaller {
  readonly callSource: CallSource
  readonly principal: Principal
  readonly organizationId: string
  /** Recorded as the id of each request. */
  readonly requestId: string
  /** False: recorded, but neither reserved nor charged. */
  readonly isCharged: boolean
  /** Asked for a line of a batch: live requests go first. */
  readonly isBatch?: boolean
  /** Told the most that a text can cost, before anything is reserved for it; what it throws ends the text. */
  readonly admits?: (most: Ticks) => void | Promise<void>
  /** Told what an answer cost that cannot be used. */
  readonly onUnusable?: (costTicks: Ticks) => void
  /** A client waits for the outcome: a full worker fails the call at once. */
  readonly isWaitedFor?: boolean
}

/**
 * Texts of one job that are read at once: more would stand in the way of requests that someone waits for. Teaching reads one at a
 * time: texts that share a run differ in the last digits by what they share it with, and the same examples must teach the same.
 */
export const textsAtOnce = 2

export async function scoreText(
  deps: TextScorerDeps,
  caller: TextCaller,
  model: Model,
  work: Omit<ScoreWork, "organizationId">,
  signal: AbortSignal,
): Promise<Scored> {
  const { isCharged, admits, onUnusable } = caller
  return await recordText(deps, caller, signal, async (call) => {
    const admit = async (most: Usage): Promise<void> => {
      await admits?.(costOf(model.prices, most))
      await call.sequence.reserve(model, most)
    }
    call.inLanguage(await detectLanguage(work.evidence))
    const request = { ...work, call, model, isCharged, ...(admits ? { admit } : {}) }
    return await score(deps, request, signal).catch((error: unknown) => {
      onUnusable?.(unusableIn(error)?.costTicks ?? 0n)
      throw error
    })
  })
}

/** One text as a request of its own, recorded however it ends. Live traffic goes first: a job waits where a request would be refused. */
async function recordText<Result extends { readonly usage: Usage }>(
  deps: TextScorerDeps,
  caller: TextCaller,
  signal: AbortSignal,
  work: (call: MeteredCall) => Promise<Result>,
): Promise<Result> {
  const { callSource, principal, organizationId, requestId, isBatch } = caller
  return await retryWhileFull({ signal, ...(caller.isWaitedFor ? { attempts: 1 } : {}) }, async () => {
    const request: RequestFacts = {
      id: requestId,
      ip: "",
      userAgent: null,
      startedMs: deps.clock.nowMs(),
      header: () => null,
      signal,
      ...(isBatch ? { isBatch } : {}),
    }
    const asker = { principal, membership: { organizationId }, request }
    return await runMetered({ meter: deps.meter }, { callSource, asker }, async (call) => {
      const result = await work(call)
      await call.succeed(result.usage)
      return result
    })
  })
}

interface TextOfVersion {
  readonly version: AskedVersion
  readonly model: Model
  readonly text: string
}

/** What all questions of a version say of a text, by one model. */
export async function answerText(
  deps: TextScorerDeps,
  caller: TextCaller,
  { version, model, text }: TextOfVersion,
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const { questions, classification, reading } = selectQuestions(version, aboutText(version, text))
  const work = { evidence: text, branches: classification.branches, ...(reading ? { reading } : {}) }
  const scored = await scoreText(deps, caller, model, work, signal)
  return answerSet(questions, scored.margins, { text, reading: scored.reading }).verdicts
}

/** A request for some of a version's questions; for all of them where it names none. */
const aboutText = (
  { model }: AskedVersion,
  evidence: string,
  questionNames: readonly string[] = [],
): Classification => ({ wire: "decisions", model, evidence, questions: [], questionNames, branches: [] })

export interface AskVersionDeps extends TextScorerDeps {
  readonly models: Pick<ModelResolver, "resolve">
}

interface AskedText {
  readonly evidence: string
  /** None: all. */
  readonly questionNames: readonly string[]
  /** What splits are sticky by. */
  readonly key: string
}

interface AnsweredText extends StagedAnswers<SetAnswer> {
  readonly questions: readonly AskedQuestion[]
}

export async function askVersion(
  deps: AskVersionDeps,
  caller: TextCaller,
  version: AskedVersion,
  { evidence, questionNames, key }: AskedText,
  signal: AbortSignal,
): Promise<AnsweredText> {
  const { questions, classification, reading } = selectQuestions(
    version,
    aboutText(version, evidence, questionNames),
  )
  const { organizationId, isCharged, onUnusable } = caller
  const { model: name, taughtOn } = version
  const written = await detectLanguage(evidence)
  const language = await languageToRead(written, classification.questions)
  const named = { organizationId, name, wanted: "decisions", key, language, taughtOn } as const
  const found = await deps.models.resolve(named)
  // Answers are compared: that of an earlier stage must not stand for one that failed.
  const resolved = { ...found, cascade: found.cascade && { ...found.cascade, on_failure: "error" as const } }
  const { questions: plain, branches } = classification
  await caller.admits?.(mostOfStages(deps, classification, resolved))
  const staged = await recordText(deps, caller, signal, async (call) => {
    call.inLanguage(written)
    const request = { call, resolved, evidence, questions: plain, branches, reading, isCharged, onUnusable }
    return await scoreStages(deps, request, setReader(questions, resolved, { ...version, evidence }))
  })
  return { ...staged, questions }
}
