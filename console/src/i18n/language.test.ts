import { expect, test } from "vitest"
import { languageFor } from "./language.ts"

test.each([
  [null, ["de-AT", "en"], "de"],
  [null, ["fi-FI", "ja-JP", "de"], "ja"],
  [null, ["zh-TW"], "zh"],
  [null, ["fi-FI"], "en"],
  [null, [], "en"],
  ["ko", ["de-DE"], "ko"],
  ["constructor", ["de-DE"], "de"],
  ["", ["en-GB", "de"], "en"],
])("chosen %j in a browser that wants %j, the console speaks %s", (chosen, wanted, language) => {
  expect(languageFor(chosen, wanted)).toBe(language)
})
