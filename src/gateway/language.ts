/**
 * The language of a text, by its n-grams (decision 23). Of the first 2,000 characters some pieces are read, so that a long text costs
 * what a short one does. What is unsure is unknown: few words, two languages that are as likely, codes.
 */
import { later } from "../base/memo.ts"
import { LanguageTag, unknownLanguage } from "../contract/language.ts"

const english = "en"
const charactersMax = 2_000
const questionsMax = 64
const pieces = 3
const pieceCharacters = 70
/** In Latin letters, which many languages share; another script tells by itself. */
const latinWordsMin = 3
/** By how much the language must score above the next, from 0 to 1. */
const leadMin = 0.05

/** Words of programs, addresses and numbers. */
const code = /[!-~]*[\d@/\\_=<>{}][!-~]*/g
const word = /[\p{L}\p{M}]+/gu
const latin = /^\p{Script=Latin}/u

/** Its table takes 29 MB and 0.2 s of processor time. */
const detector = later(async () => (await import("eld/extrasmall")).eld)

export async function detectLanguage(text: string): Promise<LanguageTag> {
  const eld = await detector()
  const read = sampleOf(text).toWellFormed().replaceAll(code, " ")
  const words = read.match(word) ?? []
  const latinWords = words.filter((one) => latin.test(one))
  const found = eld.detect(read)
  const isLatin = lettersOf(latinWords) * 2 >= lettersOf(words)
  if (
    isLatin &&
    (latinWords.length < latinWordsMin || !found.isReliable() || lead(found.getScores()) < leadMin)
  )
    return unknownLanguage
  return LanguageTag.safeParse(found.language).data ?? unknownLanguage
}

/**
 * What a model has to read to answer: the language of the evidence or, where that is English, which every model reads, or unknown, the one
 * that the questions are asked in.
 */
export async function languageToRead(
  evidence: LanguageTag,
  questions: readonly { readonly instructions: string }[],
): Promise<LanguageTag> {
  if (evidence !== english && evidence !== unknownLanguage) return evidence
  const asked = await detectLanguage(
    questions
      .slice(0, questionsMax)
      .map(({ instructions }) => instructions)
      .join(" "),
  )
  return asked === english || asked === unknownLanguage ? evidence : asked
}

/** The beginning, the middle and the end of what is read. */
function sampleOf(text: string): string {
  const read = text.slice(0, charactersMax)
  if (read.length <= pieces * pieceCharacters) return read
  const step = (read.length - pieceCharacters) / (pieces - 1)
  const starts = Array.from({ length: pieces }, (_, at) => Math.floor(at * step))
  return starts.map((start) => read.slice(start, start + pieceCharacters)).join(" ")
}

const lettersOf = (words: readonly string[]): number => words.reduce((sum, { length }) => sum + length, 0)

/** The scores come best first. */
function lead(scores: Readonly<Record<string, number>>): number {
  const [best = 0, next = 0] = Object.values(scores)
  return best - next
}
