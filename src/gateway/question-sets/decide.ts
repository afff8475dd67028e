/** Answers POST .../question_sets/{set_id}/decide: the contract's answers with the set's verdicts. */
import { combinedText } from "../../contract/decisions.ts"
import type { DecisionAnswer, DecisionsResponse } from "../../contract/decisions.ts"
import { type CallOf, type Handlers, sequenceHeader } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  type QuestionSetDecision,
  type SetVerdict,
  abstainedHeader,
  setHeader,
} from "../../contract/question-sets/decide.ts"
import type { Table } from "../../contract/table.ts"
import { tagsHeader } from "../../contract/tags.ts"
import { answer } from "../classification/wire.ts"
import { type Meter, type Sequence, finishFailed, success } from "../meter.ts"
import { noUsage } from "../sequence-record.ts"
import { askedContent, setEnd } from "../content/classification.ts"
import type { ContentKeeper } from "../content/keeper.ts"
import type { AnswerCounter } from "../monitoring/answer-counter.ts"
import { readRoutingHint, regionHeader } from "../routing/plan.ts"
import { type ModelResolver, stickyKey } from "../organization-access.ts"
import { type ScoreParts, joinMargins, scoreStages, setReader } from "../stages.ts"
import { readTags } from "../tags.ts"
import type { Sets } from "./sets.ts"
import type { Shadows } from "./shadow.ts"
import { type AskedQuestion, type AskedVersion, type Verdict, selectQuestions } from "./version.ts"

export interface DecideParts extends ScoreParts {
  readonly models: Pick<ModelResolver, "resolve">
  readonly meter: Meter
  readonly sets: Pick<Sets, "find">
  readonly shadows: Pick<Shadows, "observe">
  readonly content: ContentKeeper
  readonly answerCounter: Pick<AnswerCounter, "count">
}

type DecideCall = CallOf<Table["decideQuestionSet"]>

export function decideHandlers(parts: DecideParts): Pick<Handlers<Table>, "decideQuestionSet"> {
  return { decideQuestionSet: async (call) => await decide(parts, call) }
}

async function decide(parts: DecideParts, call: DecideCall): Promise<QuestionSetDecision> {
  const { principal, standing, request } = call
  if (!principal || !standing)
    throw new Error("Cannot decide: the endpoint lets in callers without a standing")
  const { organizationId } = standing
  const sequence = parts.meter.begin({
    callSource: "decisions",
    inferenceType: "generation",
    principal,
    organizationId,
    request,
  })
  call.header(sequenceHeader, sequence.id)
  try {
    sequence.name(`set:${call.params.set_id}`)
    const tags = readTags(request.header(tagsHeader) ?? "")
    sequence.tag(tags)
    const { input, questions: questionNames } = call.body
    const found = await parts.sets
      .find(organizationId, { name: call.params.set_id, version: call.body.version ?? null })
      .catch((error: unknown) => {
        // A path that names what is not there is 404 on this surface.
        throw error instanceof Fault && error.code === "unknown_model" ? notFound() : error
      })
    const { version } = found
    const asked = {
      wire: "decisions",
      model: version.model,
      evidence: combinedText(input),
      questions: [],
      questionNames,
      branches: [],
    } as const
    const { classification, questions, reading } = selectQuestions(version, asked)
    describeSet(sequence, version, questions.length)
    const { evidence, branches } = classification
    const key = stickyKey(request, evidence)
    const resolved = await parts.models.resolve({
      organizationId,
      name: version.model,
      wanted: "decisions",
      key,
    })
    const content = parts.content.begin({
      seqId: sequence.id,
      organizationId,
      principal,
      endpoint: "decisions",
      startedMs: request.startedMs,
      tags,
      span: sequence.trace.span,
      asked: () => askedContent(classification),
    })
    const scored = await scoreStages(
      parts,
      {
        resolved,
        organizationId,
        evidence,
        questions: classification.questions,
        branches,
        startedMs: request.startedMs,
        header: (name, value) => call.header(name, value),
        ...(reading ? { reading } : {}),
        sequence,
        hint: readRoutingHint(request),
        onPlaced: (region) => call.header(regionHeader, region),
        isCharged: true,
      },
      setReader(questions, resolved, version),
      request.signal,
    )
    const margins = joinMargins(scored.answers)
    const verdicts = scored.answers.map(({ verdict }) => verdict)
    sequence.describe({ abstained: countAbstained(verdicts) })
    // Written by `answer` as the contract's schema says.
    const decided = JSON.parse(answer(classification, margins, scored.usage.inputTokens)) as DecisionsResponse
    const answered = { found, organizationId, principal, sequenceId: sequence.id, evidence, key, verdicts }
    const [isKept] = await Promise.all([
      content.finish(() => setEnd({ ...answered, questions })),
      sequence.finish(scored.usage, success),
    ])
    setVerdictHeaders(call, version, verdicts)
    const { costTicks } = scored
    parts.answerCounter.count({ version, verdicts, startedMs: request.startedMs, costTicks })
    parts.shadows.observe({ ...answered, isKept })
    return {
      answers: decided.answers.map((one, at) => toVerdict(one, verdicts[at], questions[at])),
      version: version.number,
      model: version.model,
      usage: decided.usage,
    }
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    call.header(sequenceHeader, sequence.id)
    throw error
  }
}

/** What the record of the request says of its question set. */
export function describeSet(
  sequence: Pick<Sequence, "describe">,
  { setId, setName, number }: Pick<AskedVersion, "setId" | "setName" | "number">,
  questions: number,
): void {
  sequence.describe({ questionSetId: setId, questionSet: setName, questionSetVersion: number, questions })
}

export const countAbstained = (verdicts: readonly Verdict[]): number =>
  verdicts.filter(({ isAbstention }) => isAbstention).length

export function setVerdictHeaders(
  call: { header(name: string, value: string): void },
  version: { readonly setName: string; readonly number: number },
  verdicts: readonly Verdict[],
): void {
  call.header(setHeader, `${version.setName}@${version.number}`)
  const abstained = verdicts.filter(({ isAbstention }) => isAbstention).map(({ name }) => name)
  if (abstained.length > 0) call.header(abstainedHeader, abstained.join(","))
}

function toVerdict(
  answered: DecisionAnswer,
  verdict: Verdict | undefined,
  question: AskedQuestion | undefined,
): SetVerdict {
  if (!verdict || !question) throw new Error("Cannot decide: there is not one verdict for each answer")
  return {
    name: verdict.name,
    verdict: verdict.value ?? "abstain",
    abstained: verdict.isAbstention,
    confidence: verdict.confidence,
    threshold: question.threshold,
    taught: verdict.isTaught,
    answer: answered,
  }
}

const notFound = (): Fault =>
  new Fault("not_found", "Cannot find the question set: no such id or version is visible to this principal")
