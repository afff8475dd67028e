import { expect, test } from "vitest"
import { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import { type Draft, question } from "../playground/draft.ts"
import {
  draftOfSet,
  isSameContent,
  questionsOfDraft,
  whatIsWrongWithName,
  whatKeepsFromSaving,
} from "./set-draft.ts"

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

const draftWith = (names: readonly string[]): Draft => ({
  api: "decisions",
  model: "umpire-decide",
  rival: null,
  evidence: "",
  questions: names.map((name) => question("predicate", { name, instructions: "Is it?" })),
})

test("what a version holds comes back unchanged from the editor", () => {
  const written = questionsOfDraft(draftOfSet({ model: "umpire-decide", questions }))
  expect(written.map((one) => SetQuestion.parse(one))).toEqual(questions)
})

test("two drafts of one version are the same, and one with another threshold is not", () => {
  const one = draftOfSet({ model: "m", questions })
  expect(isSameContent(one, draftOfSet({ model: "m", questions }))).toBe(true)
  const [first, ...rest] = questions
  const changed = first ? [{ ...first, threshold: 0.9 }, ...rest] : []
  expect(isSameContent(one, draftOfSet({ model: "m", questions: changed }))).toBe(false)
})

test.each([
  ["wants a refund?", "wants_a_refund_"],
  ["-x", "x"],
  ["", "question_1"],
  ["ärger", "_rger"],
  ["a".repeat(65), "a".repeat(64)],
])("the name %j becomes %j, which a set accepts", (name, expected) => {
  const [one] = questionsOfDraft({ draft: draftWith([name]), settings: {} })
  expect(one?.name).toBe(expected)
  expect(SetQuestion.safeParse(one).success).toBe(true)
})

test.each<[string, readonly string[], string | null]>([
  ["nothing", ["a", "b"], null],
  ["no questions at all, which a set may have", [], null],
  ["names that become the same", ["a b", "a_b"], "Two questions have the name a_b."],
])("what keeps from saving: %s", (_, names, expected) => {
  expect(whatKeepsFromSaving({ draft: draftWith(names), settings: {} })).toBe(expected)
})

test.each([
  ["refunds", true],
  ["a".repeat(64), true],
  ["a".repeat(65), false],
  ["Refunds", false],
  ["qs_1", false],
  ["", false],
])("the name %j of a set: %s", (name, isFine) => {
  expect(whatIsWrongWithName(name) === null).toBe(isFine)
})
