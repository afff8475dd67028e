/** What is kept of requests, in words. */
import type { ContentLevel } from "../../../src/contract/content.ts"
import { percent, plural } from "../parts/format.ts"

export const levelNames: Readonly<Record<ContentLevel, string>> = {
  nothing: "Nothing",
  answers: "Answers only",
  evidence_and_answers: "Texts and answers",
}

export const levelHints: Readonly<Record<ContentLevel, string>> = {
  nothing: "Only counts, times and costs are recorded; no text.",
  answers: "The questions and answers are kept, the text that they are about is not.",
  evidence_and_answers: "Questions, answers and the texts that they are about are kept; review needs this.",
}

interface Kept {
  readonly keep: ContentLevel
  readonly sample_rate: number
  readonly retention_days: number
}

export function keptSentence({ keep, sample_rate, retention_days }: Kept): string {
  if (keep === "nothing" || sample_rate === 0) return "Nothing is kept"
  const of = sample_rate === 1 ? "every request" : `${percent(sample_rate)} of the requests`
  return `${levelNames[keep]} of ${of} for ${plural(retention_days, "day")}`
}

const dropReasons: Readonly<Record<string, string>> = {
  journal: "the disk or the journal was full",
  too_large: "larger than a record may be",
  redaction: "could not be redacted",
  settings: "the settings could not be read",
  decryption: "the key to decrypt it is missing",
}

export const dropReasonWords = (reason: string): string => dropReasons[reason] ?? reason
