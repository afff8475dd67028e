import { expect, test } from "vitest"
import { DecisionsRequest } from "../../../src/contract/decisions.ts"
import { SystemOneRequest } from "../../../src/contract/systemone.ts"
import { codeFor, languages } from "./code.ts"
import {
  type Draft,
  fromDecision,
  fromSystemOne,
  option,
  question,
  toDecisions,
  toSystemOne,
  whatIsMissing,
} from "./draft.ts"
import { examples } from "./examples.ts"
import { packDraft, readDraft, unpackDraft } from "./keep.ts"
import { moved } from "../parts/moved.ts"

const drafts: Draft[] = examples.map(({ make }) => ({
  api: "decisions",
  model: "umpire-decide",
  rival: null,
  ...make((text) => text),
}))
const [ticket] = drafts as [Draft]

test.each(drafts)("every example is a request that both endpoints accept", (draft) => {
  expect(DecisionsRequest.safeParse(toDecisions(draft, draft.model)).error).toBeUndefined()
  expect(SystemOneRequest.safeParse(toSystemOne(draft, draft.model)).error).toBeUndefined()
  expect(whatIsMissing(draft)).toBeNull()
})

test("evidence that is a JSON object goes to System One as an object, and to decisions as text", () => {
  const draft = { ...ticket, evidence: '{"a": [1, 2]}' }
  expect(toSystemOne(draft, "m").state).toEqual({ a: [1, 2] })
  expect(toDecisions(draft, "m").input).toBe('{"a": [1, 2]}')
  expect(toSystemOne({ ...ticket, evidence: "{not json" }, "m").state).toBe("{not json")
})

test("questions without a name, or with one twice, get names of their own in System One", () => {
  const draft = {
    ...ticket,
    questions: [
      question("predicate"),
      question("predicate", { name: "a" }),
      question("predicate", { name: "a" }),
    ],
  }
  expect(Object.keys(toSystemOne(draft, "m").questions)).toEqual(["question_1", "a", "a_3"])
})

test("both endpoints' answers read the same, in the order of the options", () => {
  const asked = question("choice", { options: [option("b"), option("a")] })
  const decision = fromDecision({
    type: "choice",
    name: null,
    choice: "a",
    confidence: 0.5,
    probabilities: [
      { value: "b", probability: 0.25 },
      { value: "a", probability: 0.75 },
    ],
  })
  const systemOne = fromSystemOne(
    { type: "choice", choice: "a", confidence: 0.5, probabilities: { a: 0.75, b: 0.25 } },
    asked,
  )
  expect(systemOne).toEqual(decision)
  expect(decision).toMatchObject({ winner: 1, probabilities: [0.25, 0.75] })
})

test("a boolean and the text of it are two options to decisions, and one to System One", () => {
  const options = [option("true", "", true), option("true"), option("maybe", "", true)]
  const draft: Draft = { ...ticket, questions: [question("choice", { instructions: "?", options })] }
  const [asked] = toDecisions(draft, "m").questions
  expect(asked).toMatchObject({ choices: [{ value: true }, { value: "true" }, { value: "maybe" }] })
  expect(DecisionsRequest.safeParse(toDecisions(draft, "m")).error).toBeUndefined()
  expect(whatIsMissing(draft)).toBeNull()
  expect(whatIsMissing({ ...draft, api: "systemone" })).toContain("same option twice")
})

test.each([
  [{ model: "" }, "Choose a model."],
  [{ evidence: " \n" }, "Give a text"],
  [{ questions: [] }, "Add a question."],
  [{ questions: [question("predicate")] }, "Question 1 has no text."],
  [{ questions: [question("choice", { instructions: "?" })] }, "option without a name"],
  [
    { questions: [question("choice", { instructions: "?", options: [option("a"), option("a")] })] },
    "same option twice",
  ],
  [{ questions: [question("score", { instructions: "?", options: [option("a")] })] }, "at least two levels"],
])("an incomplete draft says what is missing: %#", (change, sentence) => {
  expect(whatIsMissing({ ...ticket, ...change })).toContain(sentence)
})

const asking = (type: "choice" | "score", many: number): Draft => ({
  ...ticket,
  questions: [
    question(type, {
      instructions: "Which?",
      options: Array.from({ length: many }, (_, at) => option(String(at))),
    }),
  ],
})
const predicates = (many: number): Draft => ({
  ...ticket,
  questions: Array.from({ length: many }, () => question("predicate", { instructions: "Is it?" })),
})
const evidenceBytesMax = 4 * 1024 * 1024

test.each([
  ["255 options", asking("choice", 255), null],
  ["256 options", asking("choice", 256), "255 are the most"],
  ["10 levels", asking("score", 10), null],
  ["11 levels", asking("score", 11), "10 are the most"],
  ["4 MiB of evidence", { ...ticket, evidence: "x".repeat(evidenceBytesMax) }, null],
  ["a byte more of evidence", { ...ticket, evidence: "x".repeat(evidenceBytesMax + 1) }, "limit of 4 MiB"],
  ["4,096 branches", predicates(4096), null],
  ["4,097 branches", predicates(4097), "4096 are the most"],
])("the limit is told before a draft is sent: %s", (_, draft, sentence) => {
  expect(whatIsMissing(draft)).toEqual(sentence === null ? null : expect.stringContaining(sentence))
})

const withoutIds = (draft: Draft | null): unknown =>
  JSON.parse(JSON.stringify(draft, (key, value: unknown) => (key === "id" ? undefined : value)))

test("a shared link brings back the same draft", async () => {
  for (const draft of drafts)
    expect(withoutIds(await unpackDraft(await packDraft(draft)))).toEqual(withoutIds(draft))
})

test("a draft too long for a link is refused with a sentence", async () => {
  const noise = Array.from({ length: 2000 }, () => crypto.randomUUID()).join("")
  await expect(packDraft({ ...ticket, evidence: noise })).rejects.toThrow("too long for a link")
})

test.each(["", "%%%", "AAAA", "a".repeat(40_000)])("a link that is no draft is ignored: %#", async (text) => {
  expect(await unpackDraft(text)).toBeNull()
})

test("what a stranger's link holds beyond a draft is left out", () => {
  const draft = readDraft({
    ...ticket,
    evil: 1,
    questions: [{ type: "sing" }, { type: "choice", options: [null, { value: 3 }] }],
  })
  expect(draft).not.toHaveProperty("evil")
  expect(draft?.questions.map(({ type, options }) => [type, options.length])).toEqual([["choice", 2]])
})

test.each(languages)("%s code holds the whole request and never a key", (language) => {
  for (const draft of drafts) {
    const code = codeFor(language, draft, "http://127.0.0.1:8484")
    expect(code).toContain("UMPIRE_API_KEY")
    for (const { instructions } of draft.questions)
      expect(code).toContain(instructions.replaceAll("'", language === "curl" ? String.raw`'\''` : "'"))
  }
})

test("entries move, and stay where there is nowhere to go", () => {
  expect(moved([1, 2, 3], 0, 2)).toEqual([2, 3, 1])
  expect(moved([1, 2, 3], 2, 0)).toEqual([3, 1, 2])
  expect(moved([1, 2, 3], 0, -1)).toEqual([1, 2, 3])
  expect(moved([1, 2, 3], 2, 3)).toEqual([1, 2, 3])
})
