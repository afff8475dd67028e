/** Labels of examples, checked against the questions of a set and written in one form. */
import { Fault } from "../../contract/errors.ts"
import type { SetQuestion } from "../../contract/question-sets/content.ts"
import type { Label } from "../../contract/question-sets/examples.ts"
import type { Labels } from "../../store/question-sets/examples.ts"

/** What is wrong with a label, in a sentence for the person who gave it. */
export class BadLabel extends Error {
  override readonly name = "BadLabel"
}

/** Throws BadLabel. */
export function readLabels(
  given: Readonly<Record<string, unknown>>,
  questions: readonly SetQuestion[],
): Labels {
  const entries = Object.entries(given).map(([name, label]) => {
    const question = questions.find((one) => one.name === name)
    if (!question) throw new BadLabel(`the set has no question ${name.slice(0, 64)}`)
    return [name, readLabel(label, question)] as const
  })
  if (entries.length === 0) throw new BadLabel("there is no label")
  return Object.fromEntries(entries)
}

function readLabel(given: unknown, question: SetQuestion): Label {
  const label = labelOf(given, question)
  if (label !== null) return label
  throw new BadLabel(`${JSON.stringify(given)?.slice(0, 64)} is no answer to ${question.name}`)
}

/** Null when the label is no answer to the question. Files have only texts, so these are read as what they say. */
function labelOf(given: unknown, question: SetQuestion): Label | null {
  switch (question.type) {
    case "predicate":
      return yesNo.get(typeof given === "string" ? given.trim().toLowerCase() : given) ?? null
    case "choice": {
      const values = question.choices.map(({ value }) => value)
      return (
        values.find((value) => value === given) ?? values.find((value) => String(value) === given) ?? null
      )
    }
    case "score": {
      const labels = question.levels.map(({ label }) => label)
      const at = labels.findIndex((label) => label === given)
      if (at >= 0) return labels.indexOf(labels[at] ?? "", at + 1) < 0 ? at : null
      const level = typeof given === "string" && /^[0-9]$/.test(given.trim()) ? Number(given) : given
      return typeof level === "number" && labels[level] !== undefined ? level : null
    }
  }
}

const yesNo = new Map<unknown, boolean>([
  [true, true],
  ["true", true],
  ["yes", true],
  ["1", true],
  [1, true],
  [false, false],
  ["false", false],
  ["no", false],
  ["0", false],
  [0, false],
])

export function readOrRefuse(
  labels: Readonly<Record<string, unknown>>,
  questions: readonly SetQuestion[],
): Labels {
  try {
    return readLabels(labels, questions)
  } catch (error) {
    if (!(error instanceof BadLabel)) throw error
    throw new Fault("invalid_body", `Cannot use the labels: ${error.message}`, {
      details: [{ path: "labels", message: error.message }],
    })
  }
}
