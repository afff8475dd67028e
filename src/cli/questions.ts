/** Questions of a command: from flags, or a YAML or JSON file. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { parse } from "yaml"
import { objectOf } from "../base/json.ts"
import type { DecisionQuestion } from "../contract/decisions.ts"
import { type CliContext, UsageError, listOption, text, texts, valueOption } from "./command.ts"
import { unreadable } from "./given-files.ts"

export const questionOptions = {
  "yes-no": listOption("a yes/no question; may be repeated", "y"),
  choice: listOption("question = option | option | ...", "c"),
  score: listOption("question = lowest level | ... | highest level", "s"),
  questions: valueOption("a YAML or JSON file with a list of questions as in POST /v1/decisions", "q"),
} as const

export async function readQuestions(context: CliContext): Promise<DecisionQuestion[]> {
  const file = text(context, "questions")
  const listed =
    file === undefined ? [] : await readQuestionFile(resolve(context.workingDirectory, file), file)
  return [
    ...listed,
    ...texts(context, "yes-no").map((instructions): DecisionQuestion => {
      if (instructions.trim() === "") throw new UsageError("--yes-no takes a question, and it is empty")
      return { type: "predicate", instructions }
    }),
    ...texts(context, "choice").map((flag): DecisionQuestion => {
      const { instructions, parts } = splitFlag(flag, "--choice")
      return { type: "choice", instructions, choices: parts.map((value) => ({ value })) }
    }),
    ...texts(context, "score").map((flag): DecisionQuestion => {
      const { instructions, parts } = splitFlag(flag, "--score")
      return { type: "score", instructions, levels: parts.map((label) => ({ label })) }
    }),
  ]
}

/** A single option would always be the answer. */
const partsMin = 2

/** "What is it about? = a | b": the last equals sign divides, so that a question may hold one. */
function splitFlag(flag: string, option: string): { instructions: string; parts: string[] } {
  const at = flag.lastIndexOf("=")
  const parts = flag
    .slice(at + 1)
    .split("|")
    .map((part) => part.trim())
    .filter((part) => part !== "")
  const instructions = flag.slice(0, Math.max(at, 0)).trim()
  if (instructions === "" || parts.length === 0)
    throw new UsageError(`cannot read ${option}: write 'question = first | second'`)
  if (parts.length < partsMin)
    throw new UsageError(`${option} needs two or more to choose from: '${instructions} = ${parts[0]} | ...'`)
  return { instructions, parts }
}

/** The server checks the questions; here it only has to be a list. */
async function readQuestionFile(path: string, shown: string): Promise<DecisionQuestion[]> {
  const content = await readFile(path, "utf8").catch(unreadable(shown))
  let found: unknown
  try {
    found = parse(content)
  } catch (error) {
    throw new UsageError(`cannot read the questions in ${shown}: it is not YAML or JSON: ${placeOf(error)}`)
  }
  const list = Array.isArray(found) ? found : objectOf(found)["questions"]
  if (!Array.isArray(list))
    throw new UsageError(
      `cannot read the questions in ${shown}: a list, or a mapping with questions, is needed`,
    )
  // What it holds is the server's to check.
  return list as DecisionQuestion[]
}

/** The first line of the parser's message, which ends with the place: `... at line 3, column 5`. */
function placeOf(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n")
  return line.replace(/:$/, "")
}
