/** Requests, read and answered as the server does. */
import { Fault } from "../contract/errors.ts"
import { admitAny, type Scored, type ScoreEngine, type ScoreWork } from "../engine/engine.ts"
import { type Classification, coherentMargins } from "../gateway/classification/classification.ts"
import { decisionsAnswer, decodeDecisions } from "../gateway/classification/wire.ts"
import type { SetDecision } from "./types.ts"

/** Evidence is cached for an organization; here is only one. */
const organizationId = "program"

export type Scorer = Pick<ScoreEngine, "score">
type Work = Omit<ScoreWork, "organizationId">

/** The body of POST /v1/decisions. */
export const decode = (request: string): Classification => decodeDecisions(new TextEncoder().encode(request))

export async function decide(scorer: Scorer, request: string, signal: AbortSignal): Promise<SetDecision> {
  const asked = decode(request)
  checkNames(asked)
  const { margins, inputTokens } = await score(scorer, asked, signal)
  return { answers: answersOf(asked, margins), verdicts: {}, inputTokens }
}

/** Answers stand under their questions' names. */
function checkNames({ questions }: Classification): void {
  const names = new Set<string | null>([null])
  for (const { name, path } of questions) {
    if (names.has(name))
      throw new Fault("invalid_request", `Cannot decide: ${path} needs a name that no other question has`)
    names.add(name)
  }
}

export async function score(scorer: Scorer, work: Work, signal: AbortSignal): Promise<Scored> {
  const { evidence, branches, reading } = work
  const scored = await scorer.score(
    { organizationId, evidence, branches, reading },
    { signal, admit: admitAny },
  )
  return { ...scored, margins: coherentMargins(branches, scored.margins) }
}

/** The contract's answers, each under its name instead of with it. */
export function answersOf(asked: Classification, margins: Float64Array): SetDecision["answers"] {
  const { answers } = decisionsAnswer(asked, margins, { inputTokens: 0, cachedInputTokens: 0 })
  return Object.fromEntries(
    answers.flatMap(({ name, ...answer }) =>
      // Part of the wire that no model here produces.
      answer.type === "refusal" ? [] : [[name ?? "", answer] as const],
    ),
  )
}
