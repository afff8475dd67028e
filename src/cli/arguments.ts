/** Reads the arguments of a command by its options; a mistake in them is a sentence. */
import { parseArgs } from "node:util"
import { type CliContext, type Command, UsageError } from "./command.ts"

export function readArguments(
  name: string,
  { options }: Command,
  args: string[],
): Pick<CliContext, "values" | "positionals"> {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (cause) {
    throw new UsageError(mistakeIn(name, options, args) ?? "cannot read the arguments", { cause })
  }
}

function mistakeIn(name: string, options: Command["options"], args: string[]): string | undefined {
  const { tokens } = parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true })
  for (const token of tokens) {
    if (token.kind !== "option") continue
    const { rawName, value } = token
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (!option) return unknownOption(name, Object.keys(options), rawName)
    if (option.type === "boolean" && value !== undefined) return `${rawName} takes no value`
    if (option.type === "boolean") continue
    if (value === undefined) return `${rawName} needs a value`
    if (!token.inlineValue && value.length > 1 && value.startsWith("-"))
      return `${rawName} needs a value; one that begins with - is written --${token.name}=${value}`
  }
  return undefined
}

function unknownOption(name: string, known: readonly string[], given: string): string {
  const near = nearest(known, given.replace(/^-+/, ""))
  return near === undefined
    ? `there is no option ${given}; umpire ${name} --help lists them`
    : `there is no option ${given}; did you mean --${near}?`
}

const editsMax = 2
/** Two edits make any short name of any other. */
const charactersMin = 4

function nearest(known: readonly string[], given: string): string | undefined {
  const same = known.find((option) => plain(option) === plain(given))
  if (same !== undefined || given.length < charactersMin) return same
  const [first] = known
    .map((option) => ({ option, edits: editsBetween(option, given) }))
    .filter(({ edits }) => edits <= editsMax)
    .toSorted((a, b) => a.edits - b.edits)
  return first?.option
}

const plain = (option: string): string => option.replaceAll(/[-_]/g, "").toLowerCase()

/** Levenshtein distance. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1)
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, replaced))
    }
    row = next
  }
  return row[b.length] ?? 0
}
