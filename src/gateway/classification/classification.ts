/**
 * What both classification wires come to: one text of evidence, typed questions, a branch per binary read. The same question in another
 * form gets the same answer, by construction: a choice between yes and no is the predicate, levels in reverse give the same
 * probabilities in reverse, and options with one meaning share its probability.
 */
import { elementAt } from "../../base/lists.ts"
import { LIMITS, utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { type Branch, promptText } from "../../engine/branch.ts"
import { readChoice, readPredicate, readScore, softplus } from "../../scoring/answers.ts"
import { answerConfidence } from "../../scoring/teach/apply.ts"

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
  /** Of a question set: those that are asked by name; null where the model is no set. */
  readonly questionNames: readonly string[] | null
  /** The branches of all questions, one question after another; each question has `branchCount` of them. */
  readonly branches: readonly Branch[]
}

/** The name of a question set where a request names a model: `set:NAME`, `set:NAME@7`, `set:NAME@production`. */
export interface SetReference {
  readonly name: string
  /** A version's number or a label; null: the published version, or the latest where none is. */
  readonly version: string | null
}

const setPrefix = "set:"
const setForm = /^set:([a-z0-9][a-z0-9._-]{0,63})(?:@([1-9][0-9]{0,8}|[a-z][a-z0-9._-]{0,63}))?$/

export const isSetReference = (model: unknown): boolean =>
  typeof model === "string" && model.startsWith(setPrefix)

/** Throws Fault `unknown_model` for what cannot be the name of a set. */
export function parseSetReference(model: string): SetReference {
  const [, name, version = null] = setForm.exec(model) ?? []
  if (name === undefined) throw unknownSet(model)
  return { name, version }
}

export const unknownSet = (model: string): Fault =>
  new Fault(
    "unknown_model",
    `Cannot classify: the organization has no question set or version ${JSON.stringify(model.slice(0, 150))}`,
    { param: "model" },
  )

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
  const { wire, model, evidence, questions, questionNames } = decoded
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
  return { wire, model, evidence, questions, questionNames, branches }
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

/** Characters of a branch's own texts, without those of a wording. */
export function branchLength(branch: Branch): number {
  const { question } = branch
  switch (branch.kind) {
    case "predicate":
      return question.length + branch.yesMeans.length + branch.noMeans.length
    case "choice":
      return question.length + branch.value.length + branch.description.length
    case "score":
      return question.length + branch.label.length + branch.description.length
  }
}

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
      return coherentChoice(
        question.options.map(({ value, description }, _, { length }) => ({
          kind: "choice",
          question: instructions,
          value: String(value),
          description,
          options: length,
        })),
      )
    case "score":
      return coherentScore(
        question.levels.map(({ label, description }, level, { length }) => ({
          kind: "score",
          question: instructions,
          label,
          description,
          level,
          levels: length,
        })),
      )
  }
}

const tooLarge = (path: string, bytes: number): Fault =>
  new Fault(
    "question_too_large",
    `Cannot classify: ${path} expands to ${bytes} bytes; at most ${LIMITS.expandedQuestionBytesMax} are accepted`,
  )

/** The margins of each question that was asked. */
export function marginsOf(
  questions: readonly Question[],
  at: readonly number[],
  margins: Float64Array,
): Float64Array[] {
  let start = 0
  return at.map((index) => margins.slice(start, (start += branchCount(elementAt(questions, index)))))
}

type ChoiceBranch = Extract<Branch, { kind: "choice" }>
type ScoreBranch = Extract<Branch, { kind: "score" }>

const AFFIRMATIVE = new Set(["yes", "true"])
const NEGATIVE = new Set(["no", "false"])

/** Branches of one choice, so that what means the same is asked the same. */
function coherentChoice(branches: readonly ChoiceBranch[]): Branch[] {
  const plain = branches.map((branch) => ({ ...branch, description: furtherDescription(branch) }))
  const byMeaning = Map.groupBy(plain, meaningOf)
  const isYesNo = byMeaning.size === 2 && byMeaning.has("yes") && byMeaning.has("no")
  return plain.map((branch): Branch => {
    const meaning = meaningOf(branch)
    const same = byMeaning.get(meaning) ?? [branch]
    const sharers = same.length > 1 ? { sharers: same.length } : {}
    if (!isYesNo) return { ...firstByText(same), ...sharers }
    const negated = meaning === "no" ? ({ negated: true } as const) : {}
    return { kind: "predicate", question: branch.question, yesMeans: "", noMeans: "", ...negated, ...sharers }
  })
}

/** Branches of one score: a scale and its reverse count their levels in the same direction, from less to more where that shows. */
function coherentScore(branches: readonly ScoreBranch[]): Branch[] {
  if (!isDescending(branches)) return [...branches]
  return branches.map((branch) => ({ ...branch, level: branch.levels - 1 - branch.level }))
}

/** The margins of branches as they were asked for, of those that a model gave. */
export function coherentMargins(branches: readonly Branch[], margins: Float64Array): Float64Array {
  return margins.map((margin, index) => {
    const branch = branches[index]
    if (branch === undefined || branch.kind === "score") return margin
    const own = branch.kind === "predicate" && branch.negated ? -margin : margin
    return branch.sharers === undefined ? own : sharedMargin(own, branch.sharers)
  })
}

/** The margin of a probability divided among so many. */
function sharedMargin(margin: number, sharers: number): number {
  // What is not a number stays so: no probability is read from it.
  if (!Number.isFinite(margin)) return margin
  const log = -softplus(-margin) - Math.log(sharers)
  return log - Math.log1p(-Math.exp(log))
}

const comparable = (text: string): string => text.normalize("NFKC").toLowerCase().trim().replace(/\s+/gu, " ")

/** Empty where it only repeats the value. */
function furtherDescription({ value, description }: ChoiceBranch): string {
  const [one, other] = [comparable(value), comparable(description)]
  const repeats = one === other || [AFFIRMATIVE, NEGATIVE].some((words) => words.has(one) && words.has(other))
  return repeats ? "" : description
}

function meaningOf({ value, description }: ChoiceBranch): string {
  const text = comparable(value)
  if (description !== "") return JSON.stringify([text, comparable(description)])
  if (AFFIRMATIVE.has(text)) return "yes"
  return NEGATIVE.has(text) ? "no" : JSON.stringify([text])
}

/** The same one whatever the order of the options. */
const firstByText = (branches: readonly [ChoiceBranch, ...ChoiceBranch[]] | ChoiceBranch[]): ChoiceBranch =>
  // A meaning has at least the option that it was read from.
  elementAt(
    branches.toSorted((a, b) => compare(textOf(a), textOf(b))),
    0,
  )

const textOf = ({ value, description }: ChoiceBranch): string => `${value}\n${description}`
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Words by which the lower end of a scale is told from the upper one. */
const LESS =
  /\b(?:no|not|none|never|nothing|low|lower|lowest|less|least|below|under|fewer|little|few|small|tiny|minimal|minor|weak|bad|poor|worst|terrible|awful|unlikely|rarely|seldom|disagree|dissatisfied|unhappy|negative|false|calm|mild|slight|slightly|trivial|negligible|harmless|cold|zero)\b/u

/** Decided by both ends alike, so that of a scale and its reverse exactly one is turned, unless they are the same. */
function isDescending(levels: readonly ScoreBranch[]): boolean {
  const texts = levels.map(({ label, description }) => comparable(`${label} ${description}`))
  const numbers = levels.map(({ label }) => (label.trim() === "" ? Number.NaN : Number(label)))
  const [lowest = 0, highest = 0] = [numbers[0], numbers.at(-1)]
  if (numbers.every(Number.isFinite) && lowest !== highest) return lowest > highest
  const [first = "", last = ""] = [texts[0], texts.at(-1)]
  if (LESS.test(first) !== LESS.test(last)) return LESS.test(last)
  return compare(JSON.stringify(texts), JSON.stringify(texts.toReversed())) > 0
}

/** What the margins of a question come to: its most probable answer, and how sure it is. */
export interface Verdict {
  readonly name: string
  readonly isPredicate: boolean
  /** Yes or no, the value of an option, a level's index; null where it abstains. */
  readonly value: string | boolean | number | null
  readonly isAbstention: boolean
  /** Probability of the answer, which a threshold is compared with. */
  readonly confidence: number
  /** Whether what was taught was used; it is not with another version of the model. */
  readonly isTaught: boolean
}

/** Where it abstains. */
export interface AbstentionRule {
  readonly threshold: number | null
  readonly below: "abstain" | "answer"
}

export function verdictOf(
  { question, threshold, below }: AbstentionRule & { readonly question: Question },
  margins: Float64Array,
  isTaught: boolean,
): Verdict {
  const confidence = answerConfidence(question.type, margins)
  const isAbstention = threshold !== null && below === "abstain" && confidence < threshold
  const value = isAbstention ? null : mostProbable(question, margins)
  const isPredicate = question.type === "predicate"
  return { name: question.name ?? "", isPredicate, value, isAbstention, confidence, isTaught }
}

function mostProbable(question: Question, margins: Float64Array): string | boolean | number {
  switch (question.type) {
    case "predicate":
      return (margins[0] ?? 0) >= 0 ? "yes" : "no"
    case "choice":
      return question.options[readChoice(margins).winner]?.value ?? ""
    case "score": {
      const { probabilities } = readScore(margins)
      return probabilities.indexOf(Math.max(...probabilities))
    }
  }
}

/** Of the least sure question, for traces: 1 is certain, 0 is a guess. Null without questions. */
export function lowestConfidence(questions: readonly Question[], margins: Float64Array): number | null {
  let start = 0
  let lowest: number | null = null
  for (const question of questions) {
    const own = margins.subarray(start, (start += branchCount(question)))
    const confidence = confidenceOf(question, own)
    if (lowest === null || confidence < lowest) lowest = confidence
  }
  return lowest
}

function confidenceOf({ type }: Question, margins: Float64Array): number {
  switch (type) {
    case "predicate":
      return Math.abs(2 * readPredicate(margins[0] ?? Number.NaN) - 1)
    case "choice":
      return readChoice(margins).confidence
    case "score":
      return readScore(margins).confidence
  }
}
