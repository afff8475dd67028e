/** Asks a version of a set about a text for a job or a shadow: by what would answer a live request for it, stage by stage. */
import type { ModelResolver } from "../organization-access.ts"
import type { Verdict } from "../classification/verdict.ts"
import { scoreStages } from "../decision-stages.ts"
import { setReader } from "./policy.ts"
import { type TextCaller, type TextScorerParts, recordText } from "./score-texts.ts"
import { type AskedVersion, selectQuestions } from "./version.ts"

export interface AskVersionParts extends TextScorerParts {
  readonly models: Pick<ModelResolver, "resolve">
}

export interface AskedText {
  readonly evidence: string
  /** None: all. */
  readonly questionNames: readonly string[]
  /** What splits are sticky by. */
  readonly key: string
}

export async function askVersion(
  parts: AskVersionParts,
  caller: TextCaller,
  version: AskedVersion,
  { evidence, questionNames, key }: AskedText,
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const { questions, classification, reading } = selectQuestions(version, {
    wire: "decisions",
    model: version.model,
    evidence,
    questions: [],
    questionNames,
    branches: [],
  })
  const { organizationId, isCharged } = caller
  const named = { organizationId, name: version.model, wanted: "decisions", key } as const
  const found = await parts.models.resolve(named)
  // Answers are compared: that of an earlier stage must not stand for one that failed.
  const resolved = { ...found, cascade: found.cascade && { ...found.cascade, on_failure: "error" as const } }
  const scored = await recordText(parts, caller, signal, async (call) => {
    const { questions: plain, branches } = classification
    const request = { call, resolved, evidence, questions: plain, branches, reading, isCharged }
    return await scoreStages(
      parts,
      request,
      setReader(questions, resolved, { ...version, evidence: request.evidence }),
    )
  })
  return scored.answers.map(({ verdict }) => verdict)
}
