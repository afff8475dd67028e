/**
 * How a question set decides: its questions, what is made of their margins, what it tells of its answers, and POST
 * .../question_sets/{set_id}/decide.
 */
import { elementAt } from "../../base/lists.ts"
import {
  type AnswerVerdict,
  fitsUtf8,
  isBlank,
  type DecisionAnswer,
  combinedText,
} from "../../contract/decisions.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { questionSetLimits } from "../../contract/question-sets/content.ts"
import {
  abstainedHeader,
  setHeader,
  type SetVerdict,
  trialHeader,
} from "../../contract/question-sets/sets.ts"
import type { Table } from "../../contract/table.ts"
import type { Blend, TaughtCascade } from "../../scoring/teach/artefact.ts"
import { blendMargins } from "../../scoring/teach/blend.ts"
import type { ReviewRequest } from "../../store/content/journal.ts"
import {
  type Classification,
  marginsOf,
  parseSetReference,
  type Verdict,
  verdictOf,
} from "../classification/classification.ts"
import { decisionsAnswer } from "../classification/wire.ts"
import { type DecisionPolicy, type SetPolicies, type DecideDeps, decide } from "../classify.ts"
import { contentAnswers } from "../content/request-content.ts"
import { type ContentEnd, isSampled } from "../content/content-logger.ts"
import type { PlainAnswer, StageReader } from "../decision-stages.ts"
import { type MeteredCall, runMetered } from "../metered-call.ts"
import type { Resolved } from "../organization-access.ts"
import type { AnswerCounter } from "./answer-counter.ts"
import type { FoundSet, Sets } from "./sets.ts"
import type { Shadows } from "./shadow.ts"
import { teacherAnswers } from "./teacher-answers.ts"
import { type AskedQuestion, type AskedVersion, answerSet, selectQuestions } from "./version.ts"

interface SetPolicyDeps {
  readonly shadows: Pick<Shadows, "observe">
  readonly answerCounter: Pick<AnswerCounter, "count">
}

export function createSetPolicies(deps: SetPolicyDeps & { readonly sets: Pick<Sets, "find"> }): SetPolicies {
  return {
    async policyFor(organizationId, request) {
      const found = await deps.sets.find(organizationId, parseSetReference(request.model))
      return setPolicy(deps, found, request).policy
    },
  }
}

interface SetDecision {
  readonly questions: readonly AskedQuestion[]
  readonly policy: DecisionPolicy<SetAnswer>
}

/** `request` names the questions that are asked, or brings its own. */
function setPolicy(deps: SetPolicyDeps, found: FoundSet, request: Classification): SetDecision {
  const { version } = found
  const { setId, setName, number } = version
  const { classification, questions, reading } = selectQuestions(version, request)
  const { evidence } = classification
  const policy: DecisionPolicy<SetAnswer> = {
    model: version.model,
    taughtOn: version.taughtOn,
    classification,
    reading,
    description: {
      questionSetId: setId,
      questionSet: setName,
      questionSetVersion: number,
      questions: questions.length,
    },
    reader: (resolved) => setReader(questions, resolved, { ...version, evidence }),
    verdicts: (answers) => answers.map(({ verdict }, at) => answerVerdict(verdict, elementAt(questions, at))),
    tell: (call, answers) => tellVerdicts(call, version, answers.map(verdictIn)),
    content: (call, { answers }) => {
      const end = {
        found,
        questions,
        evidence,
        sequenceId: call.sequence.id,
        verdicts: answers.map(verdictIn),
      }
      return setEnd(end, isTrial(call) ? null : reviewOf(end))
    },
    recorded: (call, staged, isKept) => {
      const { answers, costTicks } = staged
      const {
        organizationId,
        principal,
        sequence,
        request: { startedMs },
      } = call
      if (isTrial(call)) return
      const verdicts = answers.map(verdictIn)
      const key = call.stickyKey(evidence)
      deps.answerCounter.count({ version, verdicts, startedMs, costTicks, language: call.language })
      const sequenceId = sequence.id
      const { answeredBy } = staged
      const escalated = isKept
        ? teacherAnswers({ seqId: sequenceId, version: number }, { questions, answers, answeredBy }, 1)
        : []
      const asked = { found, organizationId, principal, sequenceId, evidence, key, verdicts, isKept }
      deps.shadows.observe({ ...asked, escalated })
    },
  }
  return { questions, policy }
}

/** An evaluation or a text that somebody tries says nothing of how the set does on what comes to it. */
const isTrial = ({ request }: MeteredCall): boolean => request.header(trialHeader) === "true"

const verdictIn = ({ verdict }: SetAnswer): Verdict => verdict

/** Where the set abstains, a header names the question too. */
function tellVerdicts(call: MeteredCall, version: AskedVersion, verdicts: readonly Verdict[]): void {
  const abstained = verdicts.filter(({ isAbstention }) => isAbstention).map(({ name }) => name)
  call.sequence.describe({ abstained: abstained.length })
  call.header(setHeader, `${version.setName}@${version.number}`)
  if (abstained.length > 0) call.header(abstainedHeader, abstained.join(","))
}

export interface SetAnswer extends PlainAnswer {
  readonly verdict: Verdict
  /** Of the model that answered last, before anything is blended. */
  readonly ownMargins: Float64Array
  /** As fitted to these stages: an answer less probable is sent on. Null: nothing was, or to others. */
  readonly sendBelow: number | null
}

/**
 * What was fitted to the first model, a calibration or what was taught, says nothing about another. Throws Fault where it cannot be told
 * which model a calibration was fitted to.
 */
export function setReader(
  asked: readonly AskedQuestion[],
  { stages, isFirstSplit }: Pick<Resolved, "stages" | "isFirstSplit">,
  { setName, model, evidence }: Pick<AskedVersion, "setName" | "model"> & { readonly evidence: string },
): StageReader<SetAnswer> {
  if (isFirstSplit && asked.some(({ calibration, taught }) => calibration && !taught))
    throw new Fault(
      "invalid_request",
      `Cannot classify: the question set ${setName} has a calibration, which fits one model, and its model ${model} splits requests between several or chooses one by language; name one of them, or remove the calibration`,
      { param: "model" },
    )
  const questions = asked.map(({ question }) => question)
  const cascades = asked.map(({ cascade }) => (cascade && isFittedTo(cascade, stages) ? cascade : null))
  /** What the first stage answered, where it did so as when thresholds and blends were fitted. */
  const firstMargins: (Float64Array | null)[] = []
  return {
    read: (at, margins, { reading, isFirst, stage }) => {
      const own = at.map((index) => elementAt(asked, index))
      const read = answerSet(isFirst ? own : own.map(unfitted), margins, { text: evidence, reading })
      const each = marginsOf(questions, at, read.margins)
      return at.map((index, place) => {
        const ownMargins = elementAt(each, place)
        const answer = { margins: ownMargins, ownMargins, verdict: elementAt(read.verdicts, place) }
        if (stage === 0) firstMargins[index] = answer.verdict.isTaught ? answer.margins : null
        const first = firstMargins[index]
        const cascade = cascades[index]
        if (!first || cascade?.stages[stage]?.modelVersion !== reading?.modelVersion)
          return { ...answer, sendBelow: null }
        const blend = stage === 0 ? null : cascade?.blends[stage - 1]
        const sendBelow = cascade?.thresholds?.[stage] ?? null
        const blended = blend ? blendAnswer(elementAt(own, place), first, answer, blend) : null
        return { ...answer, ...blended, sendBelow }
      })
    },
    isDoubtful: ({ verdict, sendBelow }, at, { thresholds }) => {
      const { question, threshold } = elementAt(asked, at)
      return verdict.confidence < (sendBelow ?? threshold ?? thresholds[question.type])
    },
  }
}

function blendAnswer(
  asked: AskedQuestion,
  first: Float64Array,
  { margins }: PlainAnswer,
  blend: Blend,
): Pick<SetAnswer, "margins" | "verdict"> {
  const blended = blendMargins(asked.question.type, first, margins, blend)
  return { margins: blended, verdict: verdictOf(asked, blended, true) }
}

const isFittedTo = (cascade: TaughtCascade, stages: Resolved["stages"]): boolean =>
  cascade.stages.length === stages.length &&
  cascade.stages.every(({ model, modelVersion }, stage) => {
    const first = stages[stage]?.[0]
    return first?.sku === model || first?.version === modelVersion
  })

const unfitted = (question: AskedQuestion): AskedQuestion => ({
  ...question,
  calibration: null,
  taught: null,
})

interface SetAnswered {
  readonly found: FoundSet
  readonly sequenceId: string
  readonly evidence: string
  readonly questions: readonly AskedQuestion[]
  readonly verdicts: readonly Verdict[]
}

function setEnd({ found, questions, verdicts }: SetAnswered, review: ReviewRequest | null): ContentEnd {
  const { setId, setName, number, model } = found.version
  return {
    model,
    questionSet: { id: setId, name: setName, version: number },
    answers: contentAnswers(verdicts, questions),
    review,
    output: null,
  }
}

/** Null where nothing is doubtful and the sample leaves it out. */
function reviewOf({ found, sequenceId, evidence, questions, verdicts }: SetAnswered): ReviewRequest | null {
  const { version, reviewSampleRate } = found
  // A label becomes an example, which must be one.
  if (version.questions.length === 0 || !isExample(evidence)) return null
  const items = verdicts.flatMap(({ name, isAbstention, confidence }, at): ReviewRequest["items"] => {
    const threshold = questions[at]?.threshold ?? null
    if (isAbstention) return [{ question: name, reason: "abstained" }]
    if (threshold !== null && confidence < threshold) return [{ question: name, reason: "low_confidence" }]
    return isSampled("audit", `${sequenceId} ${name}`, reviewSampleRate)
      ? [{ question: name, reason: "audit" }]
      : []
  })
  return items.length === 0 ? null : { set_id: version.setId, version: version.number, items }
}

export const isExample = (evidence: string): boolean =>
  !isBlank(evidence) && !evidence.includes("\0") && fitsUtf8(evidence, questionSetLimits.inputBytesMax)

interface DecideSetDeps extends DecideDeps, SetPolicyDeps {
  readonly sets: Pick<Sets, "find">
}

export function decideHandlers(deps: DecideSetDeps): Pick<Handlers<Table>, "decideQuestionSet"> {
  return {
    decideQuestionSet: async (asker) =>
      await runMetered(deps, { callSource: "decisions", asker }, async (call) => {
        const { set_id } = asker.params
        const { input, questions: questionNames, version: wanted = null } = asker.body
        call.sequence.name(`set:${set_id}`)
        call.readTags()
        const found = await find(deps, call.organizationId, { name: set_id, version: wanted })
        const { model, number } = found.version
        const evidence = combinedText(input)
        const asked: Classification = {
          wire: "decisions",
          model,
          evidence,
          questions: [],
          questionNames,
          branches: [],
        }
        const { questions, policy } = setPolicy(deps, found, asked)
        const { answers, margins, usage } = await decide(deps, call, policy)
        const decided = decisionsAnswer(policy.classification, margins, usage)
        return {
          answers: decided.answers.map((one, at) =>
            toVerdict(one, elementAt(answers, at).verdict, elementAt(questions, at)),
          ),
          version: number,
          model,
          usage: decided.usage,
        }
      }),
  }
}

/** A path that names what is not there is 404 on this surface. */
async function find(
  { sets }: DecideSetDeps,
  organizationId: string,
  reference: Parameters<Sets["find"]>[1],
): Promise<FoundSet> {
  try {
    return await sets.find(organizationId, reference)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "unknown_model") throw error
    throw new Fault(
      "not_found",
      "Cannot find the question set: no such id or version is visible to this principal",
    )
  }
}

function toVerdict(answered: DecisionAnswer, verdict: Verdict, question: AskedQuestion): SetVerdict {
  const { value, ...told } = answerVerdict(verdict, question)
  return { name: verdict.name, verdict: value, ...told, answer: answered }
}

const answerVerdict = (
  { value, isAbstention, confidence, isTaught }: Verdict,
  { threshold }: AskedQuestion,
): AnswerVerdict => ({
  value: value ?? "abstain",
  abstained: isAbstention,
  confidence,
  threshold,
  taught: isTaught,
})
