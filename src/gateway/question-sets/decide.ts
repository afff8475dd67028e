/** Answers POST .../question_sets/{set_id}/decide: the contract's answers with the set's verdicts. */
import type { Catalog } from "../../base/catalog.ts"
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
import { answer } from "../classification/answer.ts"
import { type Meter, finishFailed, noUsage, success } from "../meter.ts"
import { findModel } from "../organization-access.ts"
import { readRoutingHint, regionHeader } from "../routing/plan.ts"
import { type ScoreParts, score } from "../score.ts"
import type { Sets } from "./sets.ts"
import type { Shadows } from "./shadow.ts"
import { type AskedQuestion, type Verdict, answerSet, selectQuestions } from "./version.ts"

export interface DecideParts extends ScoreParts {
  readonly catalog: Catalog
  readonly meter: Meter
  readonly sets: Pick<Sets, "find">
  readonly shadows: Pick<Shadows, "observe">
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
    const model = findModel(parts.catalog, version.model, "decisions")
    const scored = await score(
      parts,
      {
        model,
        organizationId,
        evidence: classification.evidence,
        branches: classification.branches,
        ...(reading ? { reading } : {}),
        sequence,
        hint: readRoutingHint(request),
        onPlaced: (region) => call.header(regionHeader, region),
        isCharged: true,
      },
      request.signal,
    )
    const { margins, verdicts } = answerSet(questions, scored.margins, scored.reading)
    // Written by `answer` as the contract's schema says.
    const decided = JSON.parse(answer(classification, margins, scored.usage.inputTokens)) as DecisionsResponse
    await sequence.finish(scored.usage, success)
    setVerdictHeaders(call, version, verdicts)
    const { evidence } = classification
    parts.shadows.observe({ found, organizationId, principal, sequenceId: sequence.id, evidence, verdicts })
    return {
      answers: decided.answers.map((one, at) => toVerdict(one, verdicts[at], questions[at])),
      version: version.number,
      model: version.model,
      usage: decided.usage,
    }
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    throw error
  }
}

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
