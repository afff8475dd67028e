/** Languages of texts on the wire: the codes that detection tells, which rules and filters name, and the header of answers. */
import { z } from "zod"

/** Of a text that is too short, holds no words, or is in no language that is known. */
export const unknownLanguage = "unknown"

/** The language that the text of the request was found to be in. */
export const languageHeader = "x-umpire-language"

/** Those that detection tells apart: BCP 47 primary tags. */
export const knownLanguages = [
  "am",
  "ar",
  "az",
  "be",
  "bg",
  "bn",
  "ca",
  "cs",
  "da",
  "de",
  "el",
  "en",
  "es",
  "et",
  "eu",
  "fa",
  "fi",
  "fr",
  "gu",
  "he",
  "hi",
  "hr",
  "hu",
  "hy",
  "is",
  "it",
  "ja",
  "ka",
  "kn",
  "ko",
  "ku",
  "lo",
  "lt",
  "lv",
  "ml",
  "mr",
  "ms",
  "nl",
  "no",
  "or",
  "pa",
  "pl",
  "pt",
  "ro",
  "ru",
  "sk",
  "sl",
  "sq",
  "sr",
  "sv",
  "ta",
  "te",
  "th",
  "tl",
  "tr",
  "uk",
  "ur",
  "vi",
  "yo",
  "zh",
] as const

export const languageTags = [...knownLanguages, unknownLanguage] as const
export const LanguageTag = z.enum(languageTags, {
  error: `a primary tag as en, de or zh is needed, one of ${knownLanguages.join(", ")}, or ${unknownLanguage}`,
})
export type LanguageTag = z.infer<typeof LanguageTag>
