/** Expands questions into branches, one binary read each. */
import { LIMITS, utf8Bytes } from "../../contract/classification-limits.ts"
import { Fault } from "../../contract/errors.ts"
import { type Branch, branchLength, promptText } from "../../engine/branch.ts"
import type { Question } from "./classification.ts"

/** Characters that a wording adds at most. */
const WORDING_CHARACTERS_MAX = 128

/** The branches of a question, in the order of its options or levels; throws Fault `question_too_large`. */
export function expandQuestion(question: Question): Branch[] {
  const branches = branchesOf(question)
  if (!branches.every(isShort)) refuseOversized(question, branches)
  return branches
}

/** So short that it fits however many bytes its characters take; most branches are, and need not be counted. */
const isShort = (branch: Branch): boolean =>
  (branchLength(branch) + WORDING_CHARACTERS_MAX) * 3 <= LIMITS.expandedQuestionBytesMax

/**
 * The limit counts a branch as it is put to a language model, whichever model answers. Sizes of well-formed parts add up, so
 * that a long question is counted once and not once per option.
 */
function refuseOversized({ path, instructions }: Question, branches: readonly Branch[]): void {
  const questionBytes = utf8Bytes(instructions)
  for (const branch of branches) {
    const bytes = questionBytes + utf8Bytes(promptText({ ...branch, question: "" }))
    if (bytes > LIMITS.expandedQuestionBytesMax) throw tooLarge(path, bytes)
  }
}

function branchesOf(question: Question): Branch[] {
  const { instructions } = question
  switch (question.type) {
    case "predicate": {
      const { yesMeans, noMeans } = question
      return [{ kind: "predicate", question: instructions, yesMeans, noMeans }]
    }
    case "choice":
      return question.options.map(({ value, description }) => ({
        kind: "choice",
        question: instructions,
        value: String(value),
        description,
      }))
    case "score":
      return question.levels.map(({ label, description }, level, { length }) => ({
        kind: "score",
        question: instructions,
        label,
        description,
        level,
        levels: length,
      }))
  }
}

const tooLarge = (path: string, bytes: number): Fault =>
  new Fault(
    "question_too_large",
    `Cannot classify: ${path} expands to ${bytes} bytes; at most ${LIMITS.expandedQuestionBytesMax} are accepted`,
  )
