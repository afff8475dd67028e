/** Taught sets, answered as the server does. */
import type { Verdict as SetVerdict } from "../gateway/classification/classification.ts"
import { readSetFile } from "../gateway/question-sets/set-file.ts"
import { answerSet, type AskedVersion, selectQuestions } from "../gateway/question-sets/version.ts"
import { type Scorer, answersOf, decode, score } from "./answers.ts"
import type { SetDecision, Verdict } from "./types.ts"

export interface OpenSet {
  readonly name: string
  readonly version: number
  /** A set's own questions are asked where it has any. */
  decide(scorer: Scorer, request: string, signal: AbortSignal): Promise<SetDecision>
}

export async function openSet(bytes: Uint8Array, modelVersion: string): Promise<OpenSet> {
  const set = await readSetFile(bytes, modelVersion)
  return {
    name: set.setName,
    version: set.number,
    decide: async (scorer, request, signal) => await decideSet(scorer, { set, request }, signal),
  }
}

async function decideSet(
  scorer: Scorer,
  { set, request }: { readonly set: AskedVersion; readonly request: string },
  signal: AbortSignal,
): Promise<SetDecision> {
  const asked = decode(request)
  const { classification, questions, reading } = selectQuestions(set, asked)
  const scored = await score(scorer, { ...classification, reading }, signal)
  const evidence = { text: asked.evidence, reading: scored.reading ?? null }
  const { margins, verdicts } = answerSet(questions, scored.margins, evidence)
  return {
    answers: answersOf(classification, margins),
    verdicts: Object.fromEntries(verdicts.map((verdict) => [verdict.name, shown(verdict)])),
    inputTokens: scored.inputTokens,
  }
}

const shown = ({ name, value, confidence, isTaught }: SetVerdict): Verdict => ({
  name,
  verdict: value,
  confidence,
  taught: isTaught,
})
