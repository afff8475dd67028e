/** Turns questions into the texts that follow the evidence, one per branch, in the wording that the default model learned. */
import { LIMITS, utf8Bytes } from "../../contract/classification-limits.ts"
import { Fault } from "../../contract/errors.ts"
import type { Question } from "./classification.ts"

/** The branch texts of a question, in the order of its options or levels; throws Fault `question_too_large`. */
export function expandQuestion(question: Question): string[] {
  const stem = `\n\nQuestion: ${question.instructions}`
  const texts = endings(question)
  if (!texts.every((ending) => isShort(stem, ending))) refuseOversized(question.path, stem, texts)
  return texts.map((ending) => stem + ending)
}

/** So short that it fits however many bytes its characters take; most questions are, and need not be counted. */
const isShort = (stem: string, ending: string): boolean =>
  (stem.length + ending.length) * 3 <= LIMITS.expandedQuestionBytesMax

/** Sizes of well-formed parts add up, so that a long stem is counted once and not once per option. */
function refuseOversized(path: string, stem: string, texts: readonly string[]): void {
  const stemBytes = utf8Bytes(stem)
  for (const ending of texts) {
    const bytes = stemBytes + utf8Bytes(ending)
    if (bytes > LIMITS.expandedQuestionBytesMax) throw tooLarge(path, bytes)
  }
}

function endings(question: Question): string[] {
  switch (question.type) {
    case "predicate": {
      const yes = question.yesMeans === "" ? "" : `\nYes means: ${question.yesMeans}`
      const no = question.noMeans === "" ? "" : `\nNo means: ${question.noMeans}`
      return [`${yes}${no}\nAnswer yes or no.`]
    }
    case "choice":
      return question.options.map(
        ({ value, description }) =>
          `\nProposed answer: ${described(String(value), description)}` +
          "\nIs the proposed answer correct? Answer yes or no.",
      )
    case "score":
      return question.levels.map(
        ({ label, description }, level, { length }) =>
          `\nProposed rating: ${described(label, description)} (level ${level} of 0..${length - 1})` +
          "\nIs the proposed rating correct? Answer yes or no.",
      )
  }
}

const described = (text: string, description: string): string =>
  description === "" ? text : `${text} - ${description}`

const tooLarge = (path: string, bytes: number): Fault =>
  new Fault(
    "question_too_large",
    `Cannot classify: ${path} expands to ${bytes} bytes; at most ${LIMITS.expandedQuestionBytesMax} are accepted`,
  )
