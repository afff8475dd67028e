/** Answers POST .../question_sets/{set_id}/decide: the contract's answers with the set's verdicts. */
import { type DecisionAnswer, combinedText } from "../../contract/decisions.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { SetVerdict } from "../../contract/question-sets/decide.ts"
import type { Table } from "../../contract/table.ts"
import type { Classification } from "../classification/classification.ts"
import type { Verdict } from "../classification/verdict.ts"
import { decisionsAnswer } from "../classification/wire.ts"
import { type DecideDeps, decide } from "../classify.ts"
import { runMetered } from "../metered-call.ts"
import { type SetPolicyDeps, setPolicy } from "./policy.ts"
import type { FoundSet, Sets } from "./sets.ts"
import type { AskedQuestion } from "./version.ts"

export interface DecideSetDeps extends DecideDeps, SetPolicyDeps {
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
        const decided = decisionsAnswer(policy.classification, margins, usage.inputTokens)
        return {
          answers: decided.answers.map((one, at) => toVerdict(one, answers[at]?.verdict, questions[at])),
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
