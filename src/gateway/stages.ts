/**
 * The stages of a request: one stage tries its models in order until one serves it. A plain model is one stage of one model. A
 * cascade of decisions asks the first model everything and each next one only what is still doubtful; what a model was sure of is
 * not asked again, so its answer is that of the model alone. Readers make of margins plain answers, or the verdicts of a question
 * set, and say what is doubtful about them.
 */
import type { Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Ticks } from "../base/money.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"
import type { CascadeRule } from "../contract/platform/virtual-models.ts"
import type { EvidenceReading, PreparedScore, ScoreWork } from "../engine/engine.ts"
import { answerConfidence } from "../scoring/teach/apply.ts"
import { type Question, branchCount } from "./classification/classification.ts"
import { coherentMargins } from "./classification/coherence.ts"
import { FurtherStages, tellStages } from "./further-stages.ts"
import type { Sequence } from "./meter.ts"
import type { MeteredCall } from "./metered-call.ts"
import type { Resolved } from "./organization-access.ts"
import type { Router } from "./routing/router.ts"
import { type Usage, costOf, noUsage } from "./sequence-record.ts"

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
  parts: ScoreParts,
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
    firstThatServes(sequence, { models, virtual, questions: count }, until, ({ model }) =>
      scoreAt(
        parts,
        {
          ...request,
          branches: branches ?? request.branches,
          reading: reading ?? request.reading,
          admit: admit && ((most) => admit(model, most)),
          model,
        },
        until,
      ),
    )
  const further = cascade ? new FurtherStages({ ...parts, request, cascade, stages: later, askStage }) : null
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
      const { type } = questions[at] as Question
      return answerConfidence(type, margins) < thresholds[type]
    },
  }
}

/** The margins of each question that was asked. */
export function marginsOf(
  questions: readonly Question[],
  at: readonly number[],
  margins: Float64Array,
): Float64Array[] {
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

/**
 * What another model may do better: a failure, overload, a context that is too short, a refusal by the organization's or the
 * key's policy. A mistake of the request, a guardrail that blocks it and a lack of credit are none.
 */
const goesOn: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "inference_failed",
  "routing_failed",
  "invalid_worker_response",
  "overloaded",
  "context_length_exceeded",
  "region_denied",
  "model_denied",
  "model_access_required",
  "decisions_unsupported",
])

const isForNextModel = (error: unknown): error is Fault => error instanceof Fault && goesOn.has(error.code)

/** One model's turn. */
export interface Turn {
  readonly model: Model
  /** Nobody comes after it. */
  readonly isLast: boolean
}

export interface StagedModels {
  readonly models: readonly Model[]
  /** Null: a plain model, which has no stages. */
  readonly virtual: string | null
  /** Of decisions. */
  readonly questions?: number
}

type StagedSequence = Pick<Sequence, "beginStage" | "endStage" | "describe">

/** The stage of the model that serves stays open: it ends with the sequence, or where it is known what it used. */
export async function firstThatServes<Result>(
  sequence: StagedSequence,
  { models, virtual, questions }: StagedModels,
  signal: AbortSignal,
  work: (turn: Turn) => Promise<Result>,
): Promise<Result> {
  if (virtual !== null) sequence.describe({ virtualModel: virtual })
  for (const [at, model] of models.entries()) {
    if (virtual !== null) sequence.beginStage(model, questions)
    const isLast = at === models.length - 1
    try {
      return await work({ model, isLast })
    } catch (error) {
      if (isLast || signal.aborted || !isForNextModel(error)) throw error
      // What fails is free.
      sequence.endStage(error.code, noUsage)
    }
  }
  throw new Error("Cannot serve the request: a stage has no models")
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

/** Another model may know how many margins were asked for. */
async function scoreAt(parts: ScoreParts, request: ScoreRequest, signal: AbortSignal): Promise<StageAnswer> {
  const { model, branches } = request
  const scored = await score(parts, request, signal)
  if (scored.margins.length === branches.length) return { model, scored }
  throw new Fault(
    "invalid_worker_response",
    `Cannot read the scores: ${scored.margins.length} margins came back for ${branches.length} branches; send the request again`,
  )
}

export interface ScoreParts {
  readonly router: Pick<Router, "open">
  readonly clock: Clock
  /** The longest that a model can work on one request. */
  readonly timeoutMs: number
}

export interface ScoreRequest extends Omit<ScoreWork, "organizationId"> {
  readonly call: MeteredCall
  readonly model: Model
  /** False: nothing is reserved, so that nothing is charged. */
  readonly isCharged: boolean
  /** Admits what it may use, instead of a reservation of its own. */
  readonly admit?: ((most: Usage) => Promise<void>) | undefined
}

export interface Scored {
  readonly margins: Float64Array
  readonly usage: Usage
  /** Where the request asks for it. */
  readonly reading: EvidenceReading | null
}

/** Finds a worker, prepares, reserves what it costs, and runs. */
export async function score(parts: ScoreParts, request: ScoreRequest, signal: AbortSignal): Promise<Scored> {
  const { call, model, evidence, branches, reading, isCharged } = request
  const { organizationId, sequence } = call
  sequence.describe({ branches: branches.length })
  const routed = await call.route(parts.router, model)
  const reserve = async (usage: Usage): Promise<void> => {
    if (request.admit) await request.admit(usage)
    else if (isCharged) await sequence.reserve(model, usage)
    else sequence.name(model.sku)
  }
  let prepared: PreparedScore | null = null
  try {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    if (branches.length === 0 && !reading) {
      await reserve(noUsage)
      return { margins: new Float64Array(), usage: noUsage, reading: null }
    }
    prepared = await routed.scorer.prepare({ organizationId, evidence, branches, reading }, signal)
    // Nothing is evaluated before what it costs is reserved; that is known exactly once the texts are tokens.
    const { inputTokens } = prepared
    await reserve({ ...noUsage, inputTokens, executionMs: parts.timeoutMs })
    const running = prepared
    prepared = null
    const startedMs = parts.clock.monotonicMs()
    const margins = await running.run(signal)
    // Read after it ran: some workers say how many tokens they read only with their answer.
    const used = { inputTokens: running.inputTokens, executionMs: parts.clock.monotonicMs() - startedMs }
    return {
      margins: coherentMargins(branches, margins),
      usage: { ...noUsage, ...used },
      reading: reading ? (running.reading ?? unread(model)) : null,
    }
  } finally {
    prepared?.discard()
    routed.close()
  }
}

/** Of an engine that does not tell: the catalog is all that is known of it. */
const unread = ({ sku, quantization }: Model): EvidenceReading => ({
  vector: null,
  modelVersion: `${sku}/${quantization}`,
})
