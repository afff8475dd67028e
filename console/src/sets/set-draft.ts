/** Questions of a set in the form that the playground's editor writes, and back. */
import type { z } from "zod"
import { SetName, type SetQuestion } from "../../../src/contract/question-sets/content.ts"
import {
  type Draft,
  type DraftQuestion,
  option,
  question,
  questionKeys,
  toDecisions,
  whatIsMissing,
} from "../playground/draft.ts"
import { t } from "../i18n/translate.ts"

type SetQuestionInput = z.input<typeof SetQuestion>

/** How far the answers to a question are trusted. */
export interface QuestionSettings {
  readonly threshold: number | null
  readonly below: "abstain" | "answer"
  readonly target_accuracy: number | null
  readonly calibration: SetQuestion["calibration"]
  readonly rules?: SetQuestion["rules"]
}

export const defaultSettings: QuestionSettings = {
  threshold: null,
  below: "abstain",
  target_accuracy: null,
  calibration: null,
}

export interface SetDraft {
  readonly draft: Draft
  /** By the id of the question's row; none: the defaults. */
  readonly settings: Readonly<Record<string, QuestionSettings>>
}

interface Content {
  readonly model: string
  readonly questions: readonly SetQuestion[]
}

export function draftOfSet({ model, questions }: Content): SetDraft {
  const rows = questions.map((one) => [draftQuestionOf(one), one] as const)
  return {
    draft: { api: "decisions", model, rival: null, evidence: "", questions: rows.map(([row]) => row) },
    settings: Object.fromEntries(
      rows.map(([{ id }, { threshold, below, target_accuracy, calibration, rules }]) => [
        id,
        { threshold, below, target_accuracy, calibration, ...(rules ? { rules } : {}) },
      ]),
    ),
  }
}

function draftQuestionOf(asked: SetQuestion): DraftQuestion {
  const { type, name, instructions } = asked
  switch (type) {
    case "predicate":
      return question(type, { name, instructions })
    case "choice":
      return question(type, {
        name,
        instructions,
        options: asked.choices.map(({ value, description }) =>
          option(String(value), description ?? "", typeof value === "boolean"),
        ),
      })
    case "score":
      return question(type, {
        name,
        instructions,
        options: asked.levels.map(({ label, description }) => option(label, description ?? "")),
      })
  }
}

/** What was taught is left out: the server keeps it where the question is unchanged. */
export function questionsOfDraft({ draft, settings }: SetDraft): SetQuestionInput[] {
  const names = questionKeys(draft.questions).map(asQuestionName)
  return toDecisions(draft, draft.model).questions.map((asked, index) => ({
    ...asked,
    name: names[index] ?? "",
    ...(settings[draft.questions[index]?.id ?? ""] ?? defaultSettings),
  }))
}

const nameCharactersMax = 64

/** A set's questions are columns of files and parts of addresses, so their names are plain. */
export function asQuestionName(name: string): string {
  const plain = name
    .trim()
    .replaceAll(/[^\w.-]+/g, "_")
    .replace(/^[.-]+/, "")
    .slice(0, nameCharactersMax)
  return plain || "question"
}

/** What keeps the draft from being saved, in words; null when nothing does. */
export function whatKeepsFromSaving(given: SetDraft): string | null {
  const { draft } = given
  const missing = whatIsMissing({ ...draft, evidence: "x" })
  if (missing && draft.questions.length > 0) return missing
  if (!draft.model) return t("Choose a model.")
  const wrong = draft.questions.findIndex(({ id }) => {
    const { threshold, target_accuracy } = given.settings[id] ?? defaultSettings
    return Number.isNaN(threshold) || Number.isNaN(target_accuracy)
  })
  if (wrong >= 0) return t("A percentage of question {wrong} cannot be read.", { wrong: wrong + 1 })
  const names = questionsOfDraft(given).map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice ? t("Two questions have the name {twice}.", { twice }) : null
}

/** In words what is wrong with the name of a set; null when nothing is. */
export function whatIsWrongWithName(name: string): string | null {
  const found = SetName.safeParse(name)
  return found.success
    ? null
    : t("Use {message}.", { message: found.error.issues[0]?.message ?? t("another name") })
}

/** Whether both hold the same questions, whatever the ids of their rows. */
export const isSameContent = (one: SetDraft, other: SetDraft): boolean =>
  one.draft.model === other.draft.model &&
  JSON.stringify(questionsOfDraft(one)) === JSON.stringify(questionsOfDraft(other))
