import { describe, expect, it } from "vitest"
import { type Question, expandQuestion } from "./classification.ts"
import { promptText } from "../../engine/branch.ts"

const stem = { name: null, path: "questions[0]", instructions: "What is it?" }
const predicate = (yesMeans = "", noMeans = ""): Question => ({
  type: "predicate",
  ...stem,
  yesMeans,
  noMeans,
})

const texts = (question: Question): string[] => expandQuestion(question).map(promptText)

describe("the wording for language models", () => {
  it("of a predicate", () => {
    expect(texts(predicate())).toEqual(["\n\nQuestion: What is it?\nAnswer yes or no."])
  })

  it("of a choice, with and without descriptions, booleans as words", () => {
    const options = [
      { value: "cat", description: "" },
      { value: "dog", description: "it barks" },
      { value: true, description: "" },
      { value: false, description: "never" },
    ]
    expect(texts({ type: "choice", ...stem, options })).toEqual([
      "\n\nQuestion: What is it?\nProposed answer: cat\nIs the proposed answer correct? Answer yes or no.",
      "\n\nQuestion: What is it?\nProposed answer: dog - it barks\nIs the proposed answer correct? Answer yes or no.",
      "\n\nQuestion: What is it?\nProposed answer: true\nIs the proposed answer correct? Answer yes or no.",
      "\n\nQuestion: What is it?\nProposed answer: false - never\nIs the proposed answer correct? Answer yes or no.",
    ])
  })

  it("of a score, each level with its place among them", () => {
    const levels = [
      { label: "low", description: "" },
      { label: "mid", description: "so so" },
      { label: "low", description: "" },
    ]
    expect(texts({ type: "score", ...stem, levels })).toEqual([
      "\n\nQuestion: What is it?\nProposed rating: low (level 0 of 0..2)\nIs the proposed rating correct? Answer yes or no.",
      "\n\nQuestion: What is it?\nProposed rating: mid - so so (level 1 of 0..2)\nIs the proposed rating correct? Answer yes or no.",
      "\n\nQuestion: What is it?\nProposed rating: low (level 2 of 0..2)\nIs the proposed rating correct? Answer yes or no.",
    ])
  })
})

it.each([
  ["both", predicate("it is", "it is not"), "\nYes means: it is\nNo means: it is not"],
  ["yes alone", predicate("it is"), "\nYes means: it is"],
  ["no alone", predicate("", "it is not"), "\nNo means: it is not"],
])("the meanings of yes and no follow the question: %s", (_, question, lines) => {
  expect(texts(question)).toEqual([`\n\nQuestion: What is it?${lines}\nAnswer yes or no.`])
})

it("a branch may have 16 KiB of UTF-8 and not a byte more, wherever the bytes are", () => {
  const room = 16 * 1024 - Buffer.byteLength(texts(predicate("y"))[0] ?? "") + 1
  const fitting = "y".repeat(room % 2) + "é".repeat(Math.floor(room / 2))
  expect(expandQuestion(predicate(fitting))).toHaveLength(1)
  expect(() => expandQuestion(predicate(`${fitting}y`))).toThrow(
    "Cannot classify: questions[0] expands to 16385 bytes; at most 16384 are accepted",
  )
})
