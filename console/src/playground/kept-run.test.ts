import { expect, test } from "vitest"
import type { BrowserStorage } from "../parts/storage.ts"
import { type Draft, question } from "./draft.ts"
import { keepDraft, keptDraft } from "./keep.ts"
import { keepRun, keptRun } from "./kept-run.ts"
import type { Run } from "./run.ts"

function memory(): BrowserStorage {
  const entries = new Map<string, string>()
  return {
    read: (entry) => JSON.parse(entries.get(entry) ?? "null") ?? undefined,
    write: (entry, value) => void entries.set(entry, JSON.stringify(value)),
    remove: (entry) => void entries.delete(entry),
  }
}

const draft: Draft = {
  api: "decisions",
  model: "umpire-decide",
  rival: null,
  evidence: "The sun is out.",
  questions: ["a", "b"].map((name) => question("predicate", { name, instructions: "Is it?" })),
}
const answered = {
  model: "umpire-decide",
  answers: [{ type: "predicate", probability: 0.7 } as const, null],
  inputTokens: 5,
  latencyMs: 3,
  costUsd: null,
}
const run: Run = { draft, outcomes: [{ answered, sequenceId: "seq_1" }] }

test("answers come back with the draft of the tab, for the very questions that it has", () => {
  const storage = memory()
  keepDraft(storage, draft)
  keepRun(storage, run)
  const back = keptDraft(storage) ?? draft
  expect(back.questions[0]?.id).not.toBe(draft.questions[0]?.id)
  const found = keptRun(storage, back)
  expect(found?.draft.questions).toBe(back.questions)
  expect(found?.outcomes).toEqual(run.outcomes)
})

test("a question that was changed since has no answer, and the others keep theirs", () => {
  const storage = memory()
  keepRun(storage, run)
  const [first, second] = draft.questions
  if (!first || !second) throw new Error("The draft has two questions")
  const changed = { ...draft, questions: [{ ...first, instructions: "Was it?" }, second] }
  const asked = keptRun(storage, changed)?.draft.questions
  expect(asked).not.toBe(changed.questions)
  expect(asked?.map(({ id }) => changed.questions.some((one) => one.id === id))).toEqual([false, true])
})

test("a failed run is not kept, and what has another form is left alone", () => {
  const storage = memory()
  keepRun(storage, run)
  keepRun(storage, { draft, outcomes: [{ error: new Error("no"), sequenceId: null }] })
  expect(keptRun(storage, draft)).toBeNull()
  storage.write("run", { draft, outcomes: [{ answered: { model: 1 }, sequenceId: null }] })
  expect(keptRun(storage, draft)).toBeNull()
})
