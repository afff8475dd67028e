/**
 * The stages of a decision. A plain model is one stage of one model. A cascade asks the first model everything and each next one
 * only what is still doubtful; what a model was sure of is not asked again, so its answer is that of the model alone. A reader
 * makes answers of margins, and says what is doubtful about them.
 */
import type { Model } from "../base/catalog.ts"
import { elementAt } from "../base/lists.ts"
import type { Ticks } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import type { CascadeRule } from "../contract/platform/virtual-models.ts"
import { type EvidenceReading, unusableIn } from "../engine/engine.ts"
import { answerConfidence } from "../scoring/teach/apply.ts"
import { marginsOf, type Question } from "./classification/classification.ts"
import { type AskStage, FurtherStages, type StageAnswer, type StagedRequest } from "./further-stages.ts"
import { costOf, type Usage } from "./meter.ts"
import { score, type ScoreDeps, type ScoreRequest, tellUncalibrated } from "./score.ts"
import { firstThatServes, tellStages } from "./stages.ts"

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
  /** Who gave each of them. */
  readonly answeredBy: readonly AnsweredBy[]
  /** Of the last stage that answered. */
  readonly usage: Usage
  readonly model: Model
  /** Of all stages. */
  readonly costTicks: Ticks
}

interface AnsweredBy {
  readonly model: Model
  /** From zero. */
  readonly stage: number
  /** Of what the stage cost, a part as large as that of any question that it was asked. */
  readonly costTicks: Ticks
}

export async function scoreStages<Answer extends PlainAnswer>(
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
        work: async ({ model }) => {
          const staged = {
            ...request,
            branches: branches ?? request.branches,
            reading: reading ?? request.reading,
            admit: admit && ((most: Usage) => admit(model, most)),
            model,
          }
          try {
            return await scoreAt(deps, staged, until)
          } catch (error) {
            const costTicks = unusableIn(error)?.costTicks ?? 0n
            further?.countUnusable(costTicks)
            request.onUnusable?.(costTicks)
            throw error
          }
        },
      },
    )
  const further = cascade ? new FurtherStages({ ...deps, request, cascade, stages: later, askStage }) : null
  const admit = further
    ? (model: Model, most: Usage): Promise<void> => further.reserveAll(model, most)
    : undefined
  const first = await askStage({ models: firstStage, questions: all.length, admit }, signal)
  const reading = { reading: first.scored.reading, isFirst: first.model === firstStage[0], stage: 0 }
  const answers = [...reader.read(all, first.scored.margins, reading)]
  const answeredBy = all.map(() => answeredOf(first, 0, all.length))
  if (virtual === null) {
    const { usage } = first.scored
    return { answers, answeredBy, usage, model: first.model, costTicks: costOf(first.model.prices, usage) }
  }
  sequence.endStage("success", first.scored.usage)
  let last = first
  if (further && cascade) {
    further.countAnswered(first)
    further.tellAnswered(0, first, { questions: all.length })
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
      further.tellAnswered(stage + 1, answered, {
        questions: doubtful.length,
        changed: doubtful.filter((at, index) => hasChanged(elementAt(answers, at), elementAt(read, index)))
          .length,
      })
      for (const [index, at] of doubtful.entries()) {
        answers[at] = elementAt(read, index)
        answeredBy[at] = answeredOf(answered, stage + 1, doubtful.length)
      }
      doubtful = doubtful.filter(isDoubtful)
    }
  }
  sequence.name(last.model.sku)
  sequence.describe({ branches: request.branches.length })
  tellStages((name, value) => call.header(name, value), sequence.stages)
  const { usage } = last.scored
  return { answers, answeredBy, usage, model: last.model, costTicks: sequence.spentTicks }
}

const answeredOf = ({ model, scored }: StageAnswer, stage: number, questions: number): AnsweredBy => ({
  model,
  stage,
  costTicks: costOf(model.prices, scored.usage) / BigInt(questions),
})

export interface PlainAnswer {
  readonly margins: Float64Array
}

/** Whether another model found another answer the most probable: one margin is that of a yes, several are those of options or levels. */
function hasChanged({ margins: before }: PlainAnswer, { margins: after }: PlainAnswer): boolean {
  return winnerOf(before) !== winnerOf(after)
}

const winnerOf = (margins: Float64Array): number =>
  margins.length === 1 ? Number((margins[0] ?? 0) >= 0) : margins.indexOf(Math.max(...margins))

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

/** Another model may know how many margins were asked for. */
async function scoreAt(deps: ScoreDeps, request: ScoreRequest, signal: AbortSignal): Promise<StageAnswer> {
  const { model, branches } = request
  const scored = await score(deps, request, signal)
  if (scored.isUncalibrated) tellUncalibrated(request.call, model)
  if (scored.margins.length === branches.length) return { model, scored }
  throw new Fault(
    "invalid_worker_response",
    `Cannot read the scores: ${scored.margins.length} margins came back for ${branches.length} branches; send the request again`,
  )
}
