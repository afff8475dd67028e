/** The rules of a question as lines of text: `input.tier == "gold" => at least High`. */
import type { EvidenceRule, SetQuestion } from "../../../src/contract/question-sets/content.ts"
import { t } from "../i18n/translate.ts"

const arrow = "=>"
const comparisons = { at_least: "at least ", at_most: "at most ", is: "" } as const
const weightDefault = 2
const weightAtEnd = /\s*\(weight ([0-9.]+)\)\s*$/

export const rulesText = (rules: SetQuestion["rules"]): string => (rules ?? []).map(lineOf).join("\n")

function lineOf({ when, answer, compare, weight }: EvidenceRule): string {
  const weighed = weight === weightDefault ? "" : ` (weight ${weight})`
  return `${when} ${arrow} ${comparisons[compare]}${shown(answer)}${weighed}`
}

const shown = (answer: EvidenceRule["answer"]): string =>
  typeof answer === "boolean" ? (answer ? "yes" : "no") : String(answer)

/** A sentence where a line is no rule. */
export function readRules(text: string): SetQuestion["rules"] | string {
  const rules: EvidenceRule[] = []
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const at = line.lastIndexOf(arrow)
    if (at < 0) return t("Write “condition => answer”: {line}", { line: line.trim().slice(0, 40) })
    const weight = weightAtEnd.exec(line)?.[1]
    const said = line
      .slice(at + arrow.length)
      .replace(weightAtEnd, "")
      .trim()
    const compare = said.startsWith(comparisons.at_least)
      ? "at_least"
      : said.startsWith(comparisons.at_most)
        ? "at_most"
        : "is"
    rules.push({
      when: line.slice(0, at).trim(),
      answer: said.slice(comparisons[compare].length).trim(),
      compare,
      weight: weight === undefined ? weightDefault : Number(weight),
    })
  }
  return rules.length === 0 ? undefined : rules
}
