/** What the included models are bad at, where a question or a text looks like it; guessed from words, so it warns and forbids nothing. */
import { t } from "../i18n/translate.ts"
import { listWords } from "../parts/format.ts"

const negation =
  /\b(?:not|never|without|nobody|nothing|neither|nor|except|unless|cannot|no longer)\b|n['’]t\b/i
const counting =
  /\bhow (?:many|often|much)\b|\bnumber of\b|\bcount(?:s|ed|ing)?\b|\b(?:at least|at most|exactly|(?:more|fewer|less) than)\s+(?:\d|one|two|three|four|five|ten)/i
const reckoning =
  /\b(?:total|sum|average|percent|percentage|add up|difference between|cheaper|older|younger)\b|\d\s*[+*×/%]\s*\d|\b(?:days?|weeks?|months?|years?|hours?) (?:before|after|since|until|between|ago|late)\b|\b(?:before|after|between|since|until)\s+(?:\d|january|february|march|april|may|june|july|august|september|october|november|december|mon|tues|wednes|thurs|fri|satur|sun)/i

const englishWords = new Set(
  "the a an and or of to in is it i you my we was were for on with that this not be are have has had at but as he she they your our me so do did from by will would can there if".split(
    " ",
  ),
)
/** Fewer words say nothing of a language. */
const languageWordsMin = 8
const englishShareMin = 0.12
const languageCharactersMax = 4000
const latinShareMin = 0.7

/** As long as the texts that it was trained on. */
const trainedTokens = 3000

export function weakSpots(instructions: readonly string[], text: string, tokens: number): string[] {
  const asks = (pattern: RegExp): boolean => instructions.some((one) => pattern.test(one))
  return [
    asks(negation) ? t("a question that turns on a “not”") : null,
    asks(counting) ? t("counting") : null,
    asks(reckoning) ? t("arithmetic and dates") : null,
    isForeign(text) ? t("texts in another language than English") : null,
    tokens > trainedTokens ? t("texts as long as this one") : null,
  ].filter((spot) => spot !== null)
}

export function weakSpotSentence(model: string, spots: readonly string[]): string | null {
  if (spots.length === 0) return null
  return t("{model} is less often right at {named}. Check it on rows whose answers you know, or teach it.", {
    model,
    named: listWords(spots),
  })
}

export function isForeign(text: string): boolean {
  const read = text.slice(0, languageCharactersMax)
  const letters = read.match(/\p{L}/gu)?.length ?? 0
  const latin = read.match(/\p{Script=Latin}/gu)?.length ?? 0
  if (letters >= languageWordsMin && latin < latinShareMin * letters) return true
  const words = read.toLowerCase().match(/[\p{L}'’]+/gu) ?? []
  if (words.length < languageWordsMin) return false
  return words.filter((word) => englishWords.has(word)).length < englishShareMin * words.length
}
