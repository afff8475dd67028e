/** The rules of a question, ready to be asked of evidence. */
import { type RuleEvidence, compileRule, ruleEvidenceLater } from "../../base/evidence-rules.ts"
import { type SetQuestion, ruleAnswer } from "../../contract/question-sets/content.ts"
import { type VotingRule, addVotes, votesOf } from "../../scoring/teach/rules.ts"
import type { Question } from "../classification/classification.ts"

export interface AskedRule extends VotingRule {
  isMet(evidence: RuleEvidence): boolean
}

export function rulesOf(question: SetQuestion, count: number): AskedRule[] {
  return (question.rules ?? []).map((rule) => {
    const answer = ruleAnswer(question, rule)
    const isFor = (option: number): boolean =>
      option === answer ||
      (rule.compare === "at_least" && option > answer) ||
      (rule.compare === "at_most" && option < answer)
    return {
      speaksFor: Array.from({ length: count }, (_, option) => isFor(option)),
      weight: rule.weight,
      isMet: compileRule(rule.when),
    }
  })
}

/** Which of the rules a text meets. */
export function metBy(rules: readonly AskedRule[], text: string): boolean[] {
  const evidence = ruleEvidenceLater(text)
  return rules.map((rule) => rule.isMet(evidence()))
}

/** Margins with what the rules say of the evidence. */
export function voteRules(
  { type }: Pick<Question, "type">,
  rules: readonly AskedRule[],
  margins: Float64Array,
  { evidence, weights }: { evidence: () => RuleEvidence; weights: readonly number[] | null },
): Float64Array {
  if (rules.length === 0) return margins
  const met = rules.map((rule) => rule.isMet(evidence()))
  if (!met.includes(true)) return margins
  return addVotes(type, margins, votesOf(rules, weights ?? rules.map(({ weight }) => weight), met))
}
