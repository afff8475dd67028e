/** What is kept of requests, in words. */
import type { ContentLevel } from "../../../src/contract/content.ts"
import { percent } from "../parts/format.ts"
import { t, tn } from "../i18n/translate.ts"

export const levelNames: Readonly<Record<ContentLevel, string>> = {
  nothing: t("Nothing"),
  answers: t("Answers only"),
  evidence_and_answers: t("Texts and answers"),
}

export const levelHints: Readonly<Record<ContentLevel, string>> = {
  nothing: t("Only counts, times and costs are recorded; no text."),
  answers: t("The questions and answers are kept, the text that they are about is not."),
  evidence_and_answers: t(
    "Questions, answers and the texts that they are about are kept; review needs this.",
  ),
}

interface Kept {
  readonly keep: ContentLevel
  readonly sample_rate: number
  readonly retention_days: number
}

export function keptSentence({ keep, sample_rate, retention_days }: Kept): string {
  if (keep === "nothing" || sample_rate === 0) return t("Nothing is kept")
  const level = levelNames[keep]
  return sample_rate === 1
    ? tn(
        retention_days,
        "{level} of every request for {count} day",
        "{level} of every request for {count} days",
        { level },
      )
    : tn(
        retention_days,
        "{level} of {share} of the requests for {count} day",
        "{level} of {share} of the requests for {count} days",
        { level, share: percent(sample_rate) },
      )
}

const dropReasons: Readonly<Record<string, string>> = {
  journal: t("the disk or the journal was full"),
  too_large: t("larger than a record may be"),
  redaction: t("could not be redacted"),
  settings: t("the settings could not be read"),
  decryption: t("the key to decrypt it is missing"),
}

export const dropReasonWords = (reason: string): string => dropReasons[reason] ?? reason
