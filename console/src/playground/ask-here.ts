/** Asks the questions of a draft in this browser: `umpire/browser` and its model come from the gateway, and the text goes nowhere. */
import type { DecisionAnswer } from "../../../src/contract/decisions.ts"
import type { BrowserUmpire, Question } from "../../../src/library/types.ts"
import type { Answered } from "./ask.ts"
import { type Draft, fromDecision, questionKeys, toDecisions } from "./draft.ts"

export const modelHere = "umpire-decide-small"

/** Beside the console, and built apart: the page loads it when it is first used. */
const library: string = "/browser/umpire.js"
let loading: Promise<BrowserUmpire> | undefined

export async function askHere(draft: Draft, signal: AbortSignal): Promise<Answered> {
  const umpire = await loadOnce()
  const keys = questionKeys(draft.questions)
  const asked = toDecisions(draft, modelHere).questions
  // Of the same fields, named as answers are looked for.
  const questions = asked.map((question, index) => ({ ...question, name: keys[index] ?? "" })) as Question[]
  const startedMs = performance.now()
  const { answers, inputTokens } = await umpire.decide({ input: draft.evidence, questions, signal })
  const latencyMs = performance.now() - startedMs
  const ordered = keys.map((key) => {
    const answer = answers[key]
    // The library's answers are the contract's, except that they cannot be changed.
    return answer ? fromDecision({ ...answer, name: key } as DecisionAnswer) : null
  })
  return { model: modelHere, answers: ordered, inputTokens, latencyMs, costUsd: 0 }
}

/** A failure is not kept: the next run tries again. */
async function loadOnce(): Promise<BrowserUmpire> {
  loading ??= import(/* @vite-ignore */ library).then(
    async ({ load }: { readonly load: () => Promise<BrowserUmpire> }) => await load(),
  )
  try {
    return await loading
  } catch (error) {
    loading = undefined
    throw error
  }
}
