/** Reads labelled evaluation sets: JSON Lines of {text, question, options, gold}. */
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { z } from "zod"

const EvaluationRow = z.object({
  text: z.string(),
  question: z.string(),
  options: z.array(z.string()).min(2),
  gold: z.string(),
})
export type EvaluationRow = z.infer<typeof EvaluationRow>

/** The names of the sets in a folder. */
export const listSets = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => name.slice(0, -".jsonl".length))
    .toSorted()

/** The first `rowsMax` rows of a set, in the order of the file. */
export function readSet(folder: string, set: string, rowsMax: number): EvaluationRow[] {
  const lines = readFileSync(join(folder, `${set}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
  return lines.slice(0, rowsMax).map((line) => EvaluationRow.parse(JSON.parse(line)))
}

/** The options yes and no are one predicate; any others are a choice. */
export const isPredicate = ({ options }: EvaluationRow): boolean =>
  options.length === 2 && options.includes("yes") && options.includes("no")
