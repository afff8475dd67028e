/** Labelled rows for `umpire eval`: JSON lines or CSV with a text, a question, its options and the right one. */
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import { parse } from "csv-parse/sync"
import { z } from "zod"
import { parsedJson } from "../base/json.ts"
import { csvOptions, decodeTable, excelWords, isExcelName } from "../base/table-text.ts"
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
  if (isExcelName(shown)) throw new UsageError(`${shown} is an Excel file. ${excelWords}`)
  const content = decodeTable(await readFile(path).catch(unreadable(shown)))
  if (content === null) throw new UsageError(`${shown} is not UTF-8`)
  const isCsv = /\.(?:csv|tsv)$/i.test(shown)
  const found = isCsv ? csvRows(content, shown, rowsMax) : jsonRows(content, shown, rowsMax)
  if (found.length === 0) throw new UsageError(`${shown} holds no rows`)
  return {
    name: basename(shown).replace(/\.(?:jsonl?|csv|tsv)$/i, ""),
    rows: found.map((value, index) => readRow(value, `${shown}:${index + 1}`)),
  }
}

const jsonRows = (content: string, shown: string, rowsMax: number): unknown[] =>
  content
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(0, rowsMax)
    .map((line, index): unknown => {
      const row = parsedJson(line)
      if (row === undefined) throw new UsageError(`${shown}:${index + 1} is not JSON`)
      return row
    })

/** The columns are those of the JSON; options stand in one cell, with | between them. */
function csvRows(content: string, shown: string, rowsMax: number): unknown[] {
  try {
    const rows: Record<string, string>[] = parse(content, {
      ...csvOptions(content),
      columns: true,
      to: rowsMax,
    })
    return rows.map(({ options = "", scale, ...row }) => ({
      ...row,
      options: options.split("|").map((option) => option.trim()),
      ...(scale === "true" ? { scale: true } : {}),
    }))
  } catch (cause) {
    throw new UsageError(`cannot read ${shown}: ${cause instanceof Error ? cause.message : "it is no CSV"}`)
  }
}

function readRow(value: unknown, place: string): EvalRow {
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
