/** Turns questions into the texts that follow the evidence, one per branch, in the wording that the default model learned. */
import { LIMITS, utf8Bytes } from "../../contract/classification-limits.ts"
import { Fault } from "../../contract/errors.ts"
import type { Question } from "./classification.ts"

/** The branch texts of a question, in the order of its options or levels; throws Fault `question_too_large`. */
export function expandQuestion(question: Question): string[] {
  const stem = `\n\nQuestion: ${question.instructions}`
  // Sizes of well-formed parts add up, so that a long stem is counted once and not once per option.
  const stemBytes = utf8Bytes(stem)
  return endings(question).map((ending) => {
    const bytes = stemBytes + utf8Bytes(ending)
    if (bytes > LIMITS.expandedQuestionBytesMax) throw tooLarge(question.path, bytes)
    return stem + ending
  })
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
