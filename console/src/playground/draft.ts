/** What the playground is about to ask: evidence and questions, in a form that both endpoints can be made from. */
import {
  type DecisionAnswer,
  type DecisionsRequest,
  LIMITS,
  fitsUtf8,
} from "../../../src/contract/decisions.ts"
import type { SystemOneAnswer, SystemOneRequest } from "../../../src/contract/systemone.ts"
import { t } from "../i18n/translate.ts"

export const questionTypes = ["predicate", "choice", "score"] as const
export type QuestionType = (typeof questionTypes)[number]
export type Api = "decisions" | "systemone"

export interface DraftOption {
  readonly id: string
  readonly value: string
  readonly description: string
  /** The word true or false is sent as a boolean and not as text. */
  readonly boolean: boolean
}

export interface DraftQuestion {
  readonly id: string
  readonly type: QuestionType
  readonly name: string
  readonly instructions: string
  /** Options of a choice or levels of a score; empty for a predicate. */
  readonly options: readonly DraftOption[]
}

export interface Draft {
  readonly api: Api
  readonly model: string
  /** A second model to ask the same; null asks one. */
  readonly rival: string | null
  readonly evidence: string
  readonly questions: readonly DraftQuestion[]
}

let last = 0
/** Ids of rows on the page; they never leave it. */
export const rowId = (): string => `row${++last}`

export const option = (value: string, description = "", boolean = false): DraftOption => ({
  id: rowId(),
  value,
  description,
  boolean,
})

export const isBooleanWord = (value: string): boolean => value === "true" || value === "false"
export const isSentAsBoolean = ({ value, boolean }: DraftOption): boolean => boolean && isBooleanWord(value)

export function question(
  type: QuestionType,
  given: Partial<Omit<DraftQuestion, "id" | "type">> = {},
): DraftQuestion {
  const options = { predicate: [], choice: ["", ""], score: ["low", "medium", "high"] }[type].map((value) =>
    option(value),
  )
  return { id: rowId(), type, name: "", instructions: "", options, ...given }
}

/** Names under which System One answers: the question's own, or one by position. */
export function questionKeys(questions: readonly DraftQuestion[]): string[] {
  const taken = new Set<string>()
  return questions.map(({ name }, index) => {
    const wanted = name.trim() || `question_${index + 1}`
    const key = taken.has(wanted) ? `${wanted}_${index + 1}` : wanted
    taken.add(key)
    return key
  })
}

export function toDecisions({ evidence, questions }: Draft, model: string): DecisionsRequest {
  return {
    model,
    input: evidence,
    questions: questions.map(({ type, name, instructions, options }) => {
      const head = { ...(name.trim() ? { name: name.trim() } : {}), instructions }
      const described = options.map(({ value, description }) => ({
        value,
        ...(description ? { description } : {}),
      }))
      const typed = described.map((one, index) => {
        const asked = options[index]
        return asked && isSentAsBoolean(asked) ? { ...one, value: one.value === "true" } : one
      })
      switch (type) {
        case "predicate":
          return { type, ...head }
        case "choice":
          return { type, ...head, choices: typed }
        case "score":
          return { type, ...head, levels: described.map(({ value, ...rest }) => ({ label: value, ...rest })) }
      }
    }),
  }
}

export function toSystemOne({ evidence, questions }: Draft, model: string): SystemOneRequest {
  const keys = questionKeys(questions)
  const entries = questions.map((one, index) => [keys[index] ?? "", systemOneQuestion(one)] as const)
  return { model, state: asJson(evidence) ?? evidence, questions: Object.fromEntries(entries) }
}

function systemOneQuestion({
  type,
  instructions,
  options,
}: DraftQuestion): SystemOneRequest["questions"][string] {
  switch (type) {
    case "predicate":
      return { type: "noul", instructions }
    case "choice":
      return {
        type,
        instructions,
        criteria: Object.fromEntries(options.map(({ value, description }) => [value, description || value])),
      }
    case "score":
      return {
        type,
        instructions,
        criteria: options.map(({ value, description }) => (description ? `${value}: ${description}` : value)),
      }
  }
}

/** Evidence that is a JSON object or array is sent as such; anything else is text. */
function asJson(evidence: string): SystemOneRequest["state"] | null {
  if (!/^\s*[{[]/.test(evidence)) return null
  try {
    return JSON.parse(evidence) as SystemOneRequest["state"]
  } catch {
    return null
  }
}

/** An answer of either endpoint, in the order in which the question lists its options. */
export type Answer =
  | { readonly type: "predicate"; readonly probability: number }
  | {
      readonly type: "choice"
      readonly winner: number
      readonly confidence: number
      readonly probabilities: readonly number[]
    }
  | {
      readonly type: "score"
      readonly score: number
      readonly confidence: number
      readonly probabilities: readonly number[]
    }

export function fromDecision(answer: DecisionAnswer): Answer | null {
  switch (answer.type) {
    case "predicate":
      return { type: "predicate", probability: answer.probability }
    case "choice":
      return {
        type: "choice",
        winner: answer.probabilities.findIndex(({ value }) => value === answer.choice),
        confidence: answer.confidence,
        probabilities: answer.probabilities.map(({ probability }) => probability),
      }
    case "score":
      return {
        type: "score",
        score: answer.score,
        confidence: answer.confidence,
        probabilities: answer.probabilities.map(({ probability }) => probability),
      }
    case "refusal":
      return null
  }
}

export function fromSystemOne(answer: SystemOneAnswer, { options }: DraftQuestion): Answer {
  switch (answer.type) {
    case "noul":
      return { type: "predicate", probability: answer.noul }
    case "choice":
      return {
        type: "choice",
        winner: options.findIndex(({ value }) => value === answer.choice),
        confidence: answer.confidence,
        probabilities: options.map(({ value }) => answer.probabilities[value] ?? 0),
      }
    case "score":
      return {
        type: "score",
        score: answer.score,
        confidence: answer.confidence,
        probabilities: options.map((_, index) => answer.probabilities[String(index)] ?? 0),
      }
  }
}

/** What keeps the draft from being asked, in words; null when nothing does. */
export function whatIsMissing({ api, evidence, questions, model }: Draft): string | null {
  if (!model) return t("Choose a model.")
  if (evidence.trim() === "") return t("Give a text: paste it, drop a file, or pick an example.")
  if (!fitsUtf8(evidence, LIMITS.evidenceBytesMax)) return t("The text is larger than the limit of 4 MiB.")
  if (questions.length === 0) return t("Add a question.")
  for (const [index, { type, instructions, options }] of questions.entries()) {
    const which = t("Question {index}", { index: index + 1 })
    if (instructions.trim() === "") return t("{which} has no text.", { which })
    if (type === "predicate") continue
    if (options.some(({ value }) => value.trim() === ""))
      return type === "choice"
        ? t("{which} has an option without a name.", { which })
        : t("{which} has a level without a name.", { which })
    if (type === "choice" && new Set(options.map((one) => identity(one, api))).size < options.length)
      return t("{which} has the same option twice.", { which })
    if (type === "choice" && options.length > LIMITS.optionsMax)
      return t("{which} has {options} options; {optionsMax} are the most.", {
        which,
        options: options.length,
        optionsMax: LIMITS.optionsMax,
      })
    if (type === "score" && options.length > LIMITS.levelsMax)
      return t("{which} has {options} levels; {levelsMax} are the most.", {
        which,
        options: options.length,
        levelsMax: LIMITS.levelsMax,
      })
    if (type === "score" && options.length < 2) return t("{which} needs at least two levels.", { which })
    if (type === "choice" && options.length < 1) return t("{which} needs an option.", { which })
  }
  const branches = questions.reduce(
    (sum, { type, options }) => sum + (type === "predicate" ? 1 : options.length),
    0,
  )
  if (branches > LIMITS.branchesMax)
    return t("The questions have {branches} options and levels in all; {branchesMax} are the most.", {
      branches,
      branchesMax: LIMITS.branchesMax,
    })
  if (api === "systemone" && new Set(questionKeys(questions)).size < questions.length)
    return t("Two questions have the same name.")
  return null
}

/** To decisions the boolean true and the text "true" are two options; System One knows only texts. */
const identity = (one: DraftOption, api: Api): string =>
  api === "decisions" && isSentAsBoolean(one) ? `boolean ${one.value}` : `text ${one.value}`
