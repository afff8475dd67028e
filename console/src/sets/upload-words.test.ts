import { expect, test } from "vitest"
import { missingInput, refusalLines } from "./upload-words.ts"

test.each([
  ["input,label\nHello,yes\n", false, null],
  ["\uFEFF text ,label\nHello,yes\n", false, null],
  ["sentence,label\nHello,yes\n", false, "The file has no column input. Its columns are sentence, label."],
  ["input;label\nHello;yes\n", false, null],
  ["sentence\tlabel\nHello\tyes\n", false, "The file has no column input. Its columns are sentence, label."],
  ["input|label\nHello|yes\n", false, "The file has no column input. Its only column is input|label."],
  // The server names the place.
  ['a,"b\n', false, null],
  ['{"message":"Hello"}\n\n{"input":"Hello"}\n', true, null],
  [
    '{"message":"Hello"}\n{"label":true}\n',
    true,
    "The file has no column input. Its columns are message, label.",
  ],
  ['{"message":', true, null],
])("%j lacks its texts: %s, %j", (text, isJsonLines, sentence) => {
  expect(missingInput(text, isJsonLines)).toBe(sentence)
})

test("many columns are counted", () => {
  const header = Array.from({ length: 23 }, (_, index) => `c${index}`).join(",")
  expect(missingInput(header, false)).toMatch(/c19 and 3 more\.$/)
})

test("rows that are refused for one reason are one line", () => {
  const reason = "the set has no question id"
  const lines = refusalLines([
    { row: 1, reason },
    { row: 2, reason: "there is no label" },
    { row: 3, reason },
    { row: 4, reason },
  ])
  expect(lines).toEqual(["Row 1 and 2 others: the set has no question id", "Row 2: there is no label"])
})
