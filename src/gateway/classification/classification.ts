/** What both classification wires come to: one text of evidence, typed questions, and a branch per binary read. */
import { LIMITS, fitsUtf8, utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { type Branch, branchLength, promptText } from "../../engine/branch.ts"

/** Which endpoint asked, and so in which shape the answers go back. */
export type Wire = "decisions" | "systemone"

interface QuestionStem {
  /** The name in decisions, where it may be null; the question ID in System One. */
  readonly name: string | null
  /** Where the question stands in the request, for sentences about it. */
  readonly path: string
  readonly instructions: string
}

interface PredicateQuestion extends QuestionStem {
  readonly type: "predicate"
  /** What yes and no mean; empty when not said. */
  readonly yesMeans: string
  readonly noMeans: string
}

interface ChoiceQuestion extends QuestionStem {
  readonly type: "choice"
  /** An empty description is none. */
  readonly options: readonly { readonly value: string | boolean; readonly description: string }[]
}

interface ScoreQuestion extends QuestionStem {
  readonly type: "score"
  /** From level zero up; an empty description is none. */
  readonly levels: readonly { readonly label: string; readonly description: string }[]
}

export type Question = PredicateQuestion | ChoiceQuestion | ScoreQuestion

export interface Classification {
  readonly wire: Wire
  /** As sent; whether the catalog knows it is the router's to say. */
  readonly model: string
  readonly evidence: string
  readonly questions: readonly Question[]
  /** The branches of all questions, one question after another; each question has `branchCount` of them. */
  readonly branches: readonly Branch[]
}

/** How many binary reads a question takes. */
export function branchCount(question: Question): number {
  switch (question.type) {
    case "predicate":
      return 1
    case "choice":
      return question.options.length
    case "score":
      return question.levels.length
  }
}

/** Expands decoded questions into branches; throws Fault `too_many_branches` or `question_too_large`. */
export function composeClassification(decoded: Omit<Classification, "branches">): Classification {
  const { wire, model, evidence, questions } = decoded
  let count = 0
  for (const question of questions) count += branchCount(question)
  if (count > LIMITS.branchesMax) {
    throw new Fault(
      "too_many_branches",
      `Cannot classify: the questions expand to ${count} branches; at most ${LIMITS.branchesMax} fit one request`,
    )
  }
  const branches: Branch[] = []
  for (const question of questions) for (const branch of expandQuestion(question)) branches.push(branch)
  return { wire, model, evidence, questions, branches }
}

/** Throws Fault `input_too_large` for evidence that is too long; `what` is what the wire calls it. */
export function refuseOversizedEvidence(evidence: string, what: string): void {
  if (fitsUtf8(evidence, LIMITS.evidenceBytesMax)) return
  throw new Fault(
    "input_too_large",
    `Cannot classify: ${what} has ${utf8Bytes(evidence)} bytes; at most ${LIMITS.evidenceBytesMax} are accepted`,
  )
}

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
