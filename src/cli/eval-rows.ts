/** Labelled rows for `umpire eval`: JSON lines with a text, a question, its options and the right one. */
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import { z } from "zod"
import type { DecisionQuestion } from "../contract/decisions.ts"
import { UsageError } from "./command.ts"
import { unreadable } from "./given-files.ts"

const Row = z.object({
  text: z.string(),
  question: z.string(),
  /** Two options yes and no are a predicate; other lists are a choice. */
  options: z.array(z.string()).min(1).max(255),
  gold: z.string(),
  descriptions: z.record(z.string(), z.string()).optional(),
  /** The options are levels of a scale, from the lowest up. */
  scale: z.boolean().optional(),
})

export interface EvalRow {
  readonly text: string
  readonly question: DecisionQuestion
  /** The classes in the order of the answer's probabilities. */
  readonly classes: readonly string[]
  readonly gold: string
}

export interface EvalSet {
  readonly name: string
  readonly rows: readonly EvalRow[]
}

export async function readEvalSet(path: string, shown: string, rowsMax: number): Promise<EvalSet> {
  const content = await readFile(path, "utf8").catch(unreadable(shown))
  const lines = content
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(0, rowsMax)
  if (lines.length === 0) throw new UsageError(`${shown} holds no rows`)
  return {
    name: basename(shown).replace(/\.jsonl?$/, ""),
    rows: lines.map((line, index) => readRow(line, `${shown}:${index + 1}`)),
  }
}

function readRow(line: string, place: string): EvalRow {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new UsageError(`${place} is not JSON`)
  }
  const parsed = Row.safeParse(value)
  if (!parsed.success)
    throw new UsageError(
      `${place}: ${parsed.error.issues[0]?.path.join(".") ?? ""}: ${parsed.error.issues[0]?.message ?? "invalid"}`,
    )
  const { text, question, options, gold, descriptions = {}, scale = false } = parsed.data
  if (!options.includes(gold)) throw new UsageError(`${place}: gold is not one of the options`)
  const described = (value: string): { description?: string } =>
    descriptions[value] === undefined ? {} : { description: descriptions[value] }
  if (isYesNo(options))
    return { text, question: { type: "predicate", instructions: question }, classes: ["yes", "no"], gold }
  if (scale)
    return {
      text,
      question: {
        type: "score",
        instructions: question,
        levels: options.map((label) => ({ label, ...described(label) })),
      },
      classes: options,
      gold,
    }
  return {
    text,
    question: {
      type: "choice",
      instructions: question,
      choices: options.map((value) => ({ value, ...described(value) })),
    },
    classes: options,
    gold,
  }
}

const isYesNo = (options: readonly string[]): boolean =>
  options.length === 2 && options.includes("yes") && options.includes("no")
