/** Keeps the last answers of the playground for as long as the tab lives, so that leaving the page does not lose them. */
import type { BrowserStorage } from "../parts/storage.ts"
import type { Answered } from "./ask.ts"
import type { Draft, DraftQuestion } from "./draft.ts"
import { readDraft } from "./keep.ts"
import type { Outcome, Run } from "./run.ts"

const entry = "run"

/** A run that failed is not kept: what was wrong may no longer be. */
export function keepRun(storage: BrowserStorage, { draft, outcomes }: Run): void {
  if (outcomes.every((outcome) => "answered" in outcome)) storage.write(entry, { draft, outcomes })
  else storage.remove(entry)
}

/** Its questions are those of the draft where nothing was changed, so that each finds its answer. */
export function keptRun(storage: BrowserStorage, draft: Draft): Run | null {
  const found = (storage.read(entry) ?? {}) as { draft?: unknown; outcomes?: unknown }
  const asked = readDraft(found.draft)
  if (!asked || !Array.isArray(found.outcomes) || !found.outcomes.every(isAnswered)) return null
  const questions = asked.questions.map((one) => draft.questions.find((other) => isSame(one, other)) ?? one)
  const isUnchanged =
    questions.length === draft.questions.length &&
    questions.every((one, index) => one === draft.questions[index])
  return {
    draft: { ...asked, questions: isUnchanged ? draft.questions : questions },
    outcomes: found.outcomes,
  }
}

const isSame = (one: DraftQuestion, other: DraftQuestion): boolean => contentOf(one) === contentOf(other)

const contentOf = ({ type, name, instructions, options }: DraftQuestion): string =>
  JSON.stringify([
    type,
    name,
    instructions,
    options.map(({ value, description, boolean }) => [value, description, boolean]),
  ])

function isAnswered(given: unknown): given is Outcome {
  const { answered, sequenceId } = (given ?? {}) as { answered?: Partial<Answered>; sequenceId?: unknown }
  return (
    typeof answered?.model === "string" &&
    Array.isArray(answered.answers) &&
    typeof answered.inputTokens === "number" &&
    typeof answered.latencyMs === "number" &&
    (sequenceId === null || typeof sequenceId === "string")
  )
}
