/**
 * Scores the questions of a request with the stages of its model. A cascade asks the first model everything and each next one
 * only what is still doubtful; what a model was sure of is not asked again, so its answer is that of the model alone. Readers make
 * of margins plain answers, or the verdicts of a question set, and say what is doubtful about them.
 */
import type { Model } from "../base/catalog.ts"
import type { Ticks } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import type { CascadeRule } from "../contract/platform/virtual-models.ts"
import type { EvidenceReading } from "../engine/engine.ts"
import { answerConfidence } from "../scoring/teach/apply.ts"
import type { Blend, TaughtCascade } from "../scoring/teach/artefact.ts"
import { blendMargins } from "../scoring/teach/blend.ts"
import { type Question, branchCount } from "./classification/classification.ts"
import { type StagedRequest, FurtherStages } from "./further-stages.ts"
import {
  type AskedQuestion,
  type AskedVersion,
  type Verdict,
  answerSet,
  verdictOf,
} from "./question-sets/version.ts"
import type { Resolved } from "./organization-access.ts"
import { type Usage, costOf } from "./sequence-record.ts"
import { type ScoreParts, firstThatServes, scoreAt, tellStages } from "./stages.ts"

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

export async function scoreStages<Answer>(
  parts: ScoreParts,
  request: StagedRequest,
  reader: StageReader<Answer>,
  signal: AbortSignal,
): Promise<StagedAnswers<Answer>> {
  const { resolved, sequence, questions } = request
  const { virtual, cascade } = resolved
  const [firstStage, ...later] = resolved.stages
  const all = questions.map((_, at) => at)
  const further = cascade ? new FurtherStages(parts, request, cascade, later) : null
  const first = await firstThatServes(
    sequence,
    { models: firstStage, virtual, questions: all.length },
    signal,
    async ({ model }) => {
      const admit = further && ((most: Usage) => further.reserveAll(model, most))
      return await scoreAt(parts, { ...request, model, ...(admit ? { admit } : {}) }, signal)
    },
  )
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
    const isDoubtful = (at: number): boolean => reader.isDoubtful(answers[at] as Answer, at, cascade)
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
      for (const [index, at] of doubtful.entries()) answers[at] = read[index] as Answer
      doubtful = doubtful.filter(isDoubtful)
    }
  }
  sequence.name(last.model.sku)
  sequence.describe({ branches: request.branches.length })
  tellStages(request.header, sequence.stages)
  return { answers, usage: last.scored.usage, model: last.model, costTicks: sequence.spentTicks }
}

interface PlainAnswer {
  readonly margins: Float64Array
}

interface SetAnswer extends PlainAnswer {
  readonly verdict: Verdict
  /** As fitted to these stages: an answer less probable is sent on. Null: nothing was, or to others. */
  readonly sendBelow: number | null
}

export function plainReader(questions: readonly Question[]): StageReader<PlainAnswer> {
  return {
    read: (at, margins) => {
      const own = cut(questions, at, margins)
      return own.map((one) => ({ margins: one }))
    },
    isDoubtful: ({ margins }, at, { thresholds }) => {
      const { type } = questions[at] as Question
      return answerConfidence(type, margins) < thresholds[type]
    },
  }
}

/**
 * What was fitted to the first model, a calibration or what was taught, says nothing about another. Throws Fault where it cannot be told
 * which model a calibration was fitted to.
 */
export function setReader(
  asked: readonly AskedQuestion[],
  { stages, isFirstSplit }: Pick<Resolved, "stages" | "isFirstSplit">,
  set: Pick<AskedVersion, "setName" | "model">,
): StageReader<SetAnswer> {
  if (isFirstSplit && asked.some(({ calibration, taught }) => calibration && !taught))
    throw new Fault(
      "invalid_request",
      `Cannot classify: the question set ${set.setName} has a calibration, which fits one model, and its model ${set.model} splits requests between several; name one of them, or remove the calibration`,
      { param: "model" },
    )
  const questions = asked.map(({ question }) => question)
  const cascades = asked.map(({ cascade }) => (cascade && isFittedTo(cascade, stages) ? cascade : null))
  /** What the first stage answered, where it did so as when thresholds and blends were fitted. */
  const firstMargins: (Float64Array | null)[] = []
  return {
    read: (at, margins, { reading, isFirst, stage }) => {
      const own = at.map((index) => asked[index] as AskedQuestion)
      const read = answerSet(isFirst ? own : own.map(unfitted), margins, reading)
      const each = cut(questions, at, read.margins)
      return at.map((index, place) => {
        const answer = { margins: each[place] as Float64Array, verdict: read.verdicts[place] as Verdict }
        if (stage === 0) firstMargins[index] = answer.verdict.isTaught ? answer.margins : null
        const first = firstMargins[index]
        const cascade = cascades[index]
        if (!first || cascade?.stages[stage]?.modelVersion !== reading?.modelVersion)
          return { ...answer, sendBelow: null }
        const blend = stage === 0 ? null : cascade?.blends[stage - 1]
        const sendBelow = cascade?.thresholds?.[stage] ?? null
        return {
          ...(blend ? blendAnswer(own[place] as AskedQuestion, first, answer, blend) : answer),
          sendBelow,
        }
      })
    },
    isDoubtful: ({ verdict, sendBelow }, at, { thresholds }) => {
      const { question, threshold } = asked[at] as AskedQuestion
      return verdict.confidence < (sendBelow ?? threshold ?? thresholds[question.type])
    },
  }
}

function blendAnswer(
  asked: AskedQuestion,
  first: Float64Array,
  { margins }: PlainAnswer,
  blend: Blend,
): Omit<SetAnswer, "sendBelow"> {
  const blended = blendMargins(asked.question.type, first, margins, blend)
  return { margins: blended, verdict: verdictOf(asked, blended, true) }
}

const isFittedTo = (cascade: TaughtCascade, stages: Resolved["stages"]): boolean =>
  cascade.stages.length === stages.length &&
  cascade.stages.every(({ model }, stage) => model === stages[stage]?.[0].sku)

const unfitted = (question: AskedQuestion): AskedQuestion => ({
  ...question,
  calibration: null,
  taught: null,
})

/** The margins of each question that was asked. */
function cut(questions: readonly Question[], at: readonly number[], margins: Float64Array): Float64Array[] {
  let start = 0
  return at.map((index) => margins.slice(start, (start += branchCount(questions[index] as Question))))
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
