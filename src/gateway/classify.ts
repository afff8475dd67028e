/**
 * Answers the classification endpoints. A policy says what is asked of which model and what its margins come to: the questions
 * of the request themselves, or a question set.
 */
import type { Model } from "../base/catalog.ts"
import { usdText } from "../base/money.ts"
import type { AnswerVerdict } from "../contract/decisions.ts"
import { type Call, costHeader, type Handlers } from "../contract/endpoint.ts"
import { type LanguageTag, unknownLanguage } from "../contract/language.ts"
import { warningHeader } from "../contract/platform/virtual-models.ts"
import type { Table } from "../contract/table.ts"
import type { ScoreWork } from "../engine/engine.ts"
import { type Classification, lowestConfidence, type Wire } from "./classification/classification.ts"
import { type Compatibility, createDecode } from "./classification/decode.ts"
import { decisionsAnswer, type Judged, systemOneAnswer } from "./classification/wire.ts"
import type { ContentEnd } from "./content/content-logger.ts"
import { askedContent, plainEnd } from "./content/request-content.ts"
import {
  joinMargins,
  type PlainAnswer,
  plainReader,
  scoreStages,
  type StagedAnswers,
  type StageReader,
} from "./decision-stages.ts"
import { detectLanguage, languageToRead } from "./language.ts"
import type { ScoreDeps } from "./score.ts"
import { type MeteredCall, type MeteredDeps, headOf, modelNamedIn, runMetered } from "./metered-call.ts"
import type { ModelResolver, Resolved } from "./organization-access.ts"
import type { SequenceDescription, Usage } from "./meter.ts"

export interface DecideDeps extends ScoreDeps, MeteredDeps {
  readonly models: Pick<ModelResolver, "resolve">
}

interface ClassifyDeps extends DecideDeps {
  readonly compatibility: Compatibility
  readonly sets: SetPolicies
}

/** The policies of question sets. */
export interface SetPolicies {
  /** Of the set that the request names as its model. */
  policyFor(organizationId: string, request: Classification): Promise<DecisionPolicy>
}

export interface DecisionPolicy<Answer extends PlainAnswer = PlainAnswer> {
  /** A name in the catalog, or that of a virtual model. */
  readonly model: string
  /** Versions of models that the answers were taught on. */
  readonly taughtOn?: readonly string[]
  readonly classification: Classification
  /** What the engine is asked for beside the margins. */
  readonly reading: ScoreWork["reading"]
  readonly description: SequenceDescription
  /** Throws Fault where the margins of these models cannot be read. */
  reader(resolved: Resolved): StageReader<Answer>
  /** What is said of each answer in the body beside it. */
  verdicts?(answers: readonly Answer[]): readonly AnswerVerdict[]
  /** Adds to the record and the headers what is said besides the answers. */
  tell?(call: MeteredCall, answers: readonly Answer[]): void
  content(call: MeteredCall, decided: Decided<Answer>): ContentEnd
  /** Called once the request is recorded. */
  recorded?(call: MeteredCall, decided: Decided<Answer>, isKept: boolean): void
}

interface Decided<Answer extends PlainAnswer = PlainAnswer> extends StagedAnswers<Answer> {
  /** Of all branches. */
  readonly margins: Float64Array
}

type BytesCall = Call<unknown, unknown, Uint8Array>

export function classificationHandlers(
  deps: ClassifyDeps,
): Pick<Handlers<Table>, "createDecision" | "createSystemOne"> {
  const decode = createDecode(deps.compatibility)
  const classify = async <Answer>(
    wire: Wire,
    asker: BytesCall,
    answer: (classification: Judged, margins: Float64Array, usage: Usage) => Answer,
  ): Promise<Answer> =>
    await runMetered(deps, { callSource: wire, asker }, async (call) => {
      const { organizationId, request, sequence } = call
      const asked = await call.read(asker.body, async (bytes) => {
        const head = headOf(bytes)
        try {
          return await decode(wire, bytes, organizationId, request.signal)
        } catch (error) {
          sequence.name(modelNamedIn(head))
          throw error
        }
      })
      sequence.name(asked.model)
      const isOfSet = asked.questionNames !== null
      const policy = isOfSet ? await deps.sets.policyFor(organizationId, asked) : plainPolicy(asked)
      const { answers, margins, usage } = await decide(deps, call, policy)
      const verdicts = policy.verdicts?.(answers) ?? null
      return answer({ ...policy.classification, verdicts }, margins, usage)
    })
  return {
    createDecision: async (call) => await classify("decisions", call, decisionsAnswer),
    createSystemOne: async (call) => await classify("systemone", call, systemOneAnswer),
  }
}

/** Asks what the policy asks. An answer leaves only after its record is written. */
export async function decide<Answer extends PlainAnswer>(
  deps: DecideDeps,
  call: MeteredCall,
  policy: DecisionPolicy<Answer>,
): Promise<Decided<Answer>> {
  const { organizationId, sequence } = call
  const { classification, reading } = policy
  const { evidence, questions, branches } = classification
  sequence.describe(policy.description)
  const language = await languageToRead(call.inLanguage(await detectLanguage(evidence)), questions)
  const resolved = await deps.models.resolve({
    organizationId,
    name: policy.model,
    wanted: "decisions",
    key: call.stickyKey(evidence),
    language,
    taughtOn: policy.taughtOn ?? [],
  })
  const reader = policy.reader(resolved)
  call.keep(() => askedContent(classification))
  const request = { call, resolved, evidence, questions, branches, reading, isCharged: true }
  const staged = await scoreStages(deps, request, reader)
  const decided = { ...staged, margins: joinMargins(staged.answers) }
  // Worked out only where the request is traced.
  sequence.trace.span?.set({ "umpire.decision.confidence": lowestConfidence(questions, decided.margins) })
  if (isForeign(decided.model, language)) call.header(warningHeader, "language")
  policy.tell?.(call, decided.answers)
  const isKept = await call.succeed(decided.usage, () => policy.content(call, decided))
  call.header(costHeader, usdText(decided.costTicks))
  policy.recorded?.(call, decided, isKept)
  return decided
}

/** A model that does not say what it has learnt may have learnt every language. */
const isForeign = ({ languages }: Model, language: LanguageTag): boolean =>
  language !== unknownLanguage && languages?.includes(language) === false

const plainPolicy = (classification: Classification): DecisionPolicy => ({
  model: classification.model,
  classification,
  reading: undefined,
  description: { questions: classification.questions.length },
  reader: () => plainReader(classification.questions),
  content: (_, { model, margins }) => plainEnd(model.sku, classification.questions, margins),
})
