import { expect, test } from "vitest"
import { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { BrowserStorage } from "../parts/storage.ts"
import { forgetSetDraft, keepSetDraft, keptSetDraft } from "./kept-set-draft.ts"
import { draftOfSet, questionsOfDraft } from "./set-draft.ts"

function memory(): BrowserStorage & { entries: Map<string, string> } {
  const entries = new Map<string, string>()
  return {
    entries,
    read: (entry) => JSON.parse(entries.get(entry) ?? "null") ?? undefined,
    write: (entry, value) => void entries.set(entry, JSON.stringify(value)),
    remove: (entry) => void entries.delete(entry),
  }
}

const questions = [
  { type: "predicate", name: "refund", instructions: "Money back?", threshold: 0.8, below: "answer" },
  {
    type: "choice",
    name: "team",
    instructions: "Which team?",
    choices: [{ value: "billing", description: "money" }, { value: true }],
    calibration: { temperature: 2, bias: 0 },
  },
  {
    type: "score",
    name: "mood",
    instructions: "How angry?",
    levels: [{ label: "calm" }, { label: "angry" }],
    target_accuracy: 0.9,
  },
].map((one) => SetQuestion.parse(one))

const kept = {
  revision: 3,
  hash: "abc",
  at: 5,
  current: draftOfSet({ model: "umpire-decide", questions }),
}

test("unsaved changes come back with the settings of every question", () => {
  const storage = memory()
  keepSetDraft(storage, "qs_1", kept)
  const back = keptSetDraft(storage, "qs_1")
  expect(back && questionsOfDraft(back.current).map((one) => SetQuestion.parse(one))).toEqual(questions)
  expect(back).toMatchObject({
    revision: 3,
    hash: "abc",
    at: 5,
    current: { draft: { model: "umpire-decide" } },
  })
  expect(keptSetDraft(storage, "qs_2")).toBeNull()
  forgetSetDraft(storage, "qs_1")
  expect(keptSetDraft(storage, "qs_1")).toBeNull()
})

test.each([
  ["no object", 1],
  ["no revision", { hash: "a", at: 1, current: {} }],
  ["no draft", { revision: 1, hash: "a", at: 1, current: { draft: {}, settings: [] } }],
  [
    "fewer settings than questions",
    { revision: 1, hash: "a", at: 1, current: { draft: kept.current.draft, settings: [] } },
  ],
])("what another version or a stranger wrote is left alone: %s", (_, written) => {
  const storage = memory()
  storage.write("set-draft.qs_1", written)
  expect(keptSetDraft(storage, "qs_1")).toBeNull()
})
