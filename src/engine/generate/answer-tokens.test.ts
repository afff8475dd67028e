import { expect, test } from "vitest"
import { findAnswerTokens } from "./scoring.ts"

const isPlain = (): boolean => false

test("every spelling of yes and of no is found, in byte-level and in SentencePiece vocabularies", () => {
  const texts = [
    "yes",
    "Ġyes",
    "Yes",
    "▁YES",
    "no",
    "▁no",
    "No",
    "ĠNO",
    " no",
    "yesterday",
    "not",
    "nO",
    "ĠĠyes",
  ]
  expect(findAnswerTokens(texts, isPlain)).toEqual({ yes: [0, 1, 2, 3], no: [4, 5, 6, 7, 8] })
})

test("a control token that spells an answer is not one", () => {
  expect(findAnswerTokens(["yes", "no", "no"], (token) => token === 2)).toEqual({ yes: [0], no: [1] })
})

test.each([
  ["yes", ["no", "ye", "s"], "0 tokens for yes and 1 for no"],
  ["no", ["yes", "n", "o"], "1 tokens for yes and 0 for no"],
])("a vocabulary without a token for %s is refused", (_, texts, sentence) => {
  expect(() => findAnswerTokens(texts, isPlain)).toThrow(sentence)
})
