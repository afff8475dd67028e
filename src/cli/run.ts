/** Finds the command that the arguments name, reads its options, runs it, and turns mistakes into sentences. */
import { parseArgs } from "node:util"
import { type CliContext, type Command, UsageError } from "./command.ts"

export interface CommandEntry {
  /** One line of `umpire --help`. */
  readonly summary: string
  load(): Promise<Command>
}

export type Commands = Readonly<Record<string, CommandEntry>>
type Surroundings = Pick<CliContext, "environment" | "workingDirectory" | "stdout" | "stderr" | "stdin">

/** What `umpire` alone, or with options only, means. */
const commandDefault = "serve"
const exitUsage = 2
const exitFailure = 1

export async function runCli(
  commands: Commands,
  version: string,
  { argv, surroundings }: { argv: readonly string[]; surroundings: Surroundings },
): Promise<number> {
  const [first = commandDefault] = argv
  if (first === "--help" || first === "-h" || first === "help")
    return print(surroundings, overview(commands, version, helpWidth(surroundings)))
  const isOption = first.startsWith("-")
  const name = isOption ? commandDefault : first
  const rest = isOption ? [...argv] : argv.slice(1)
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!entry) {
    surroundings.stderr.write(`umpire: no command ${name}; umpire --help lists them\n`)
    return exitUsage
  }
  const command = await entry.load()
  if (rest.includes("--help") || rest.includes("-h"))
    return print(
      surroundings,
      help(name, { summary: entry.summary, ...command, width: helpWidth(surroundings) }),
    )
  return await attempt(name, command, { rest, surroundings })
}

async function attempt(
  name: string,
  command: Command,
  { rest, surroundings }: { rest: string[]; surroundings: Surroundings },
): Promise<number> {
  try {
    const { values, positionals } = readArguments(name, command, rest)
    return await command.run({ ...surroundings, positionals, values })
  } catch (error) {
    surroundings.stderr.write(`umpire ${name}: ${sentenceOf(error, surroundings)}\n`)
    return error instanceof UsageError ? exitUsage : exitFailure
  }
}

/** One sentence. UMPIRE_DEBUG=1 shows the stack, for developers. */
function sentenceOf(error: unknown, { environment }: Surroundings): string {
  if (!(error instanceof Error)) return String(error)
  if (environment["UMPIRE_DEBUG"] === "1") return error.stack ?? error.message
  const [line = ""] = error.message.split("\n")
  return isExpected(error) ? error.message : `Cannot finish: ${line} (UMPIRE_DEBUG=1 shows where)`
}

/** Failures that name themselves: a mistake in the arguments, a Fault, a locked directory, a database that is unavailable. */
const isExpected = (error: Error): boolean =>
  !["Error", "TypeError", "RangeError", "SyntaxError", "AssertionError"].includes(error.name)

/** Wider lines are hard to read, and what is piped has no width of its own. */
const helpColumnsMax = 100
const helpColumnsMin = 60

const helpWidth = ({ stdout: { columns = helpColumnsMax } }: Surroundings): number =>
  Math.max(helpColumnsMin, Math.min(helpColumnsMax, columns))

function overview(commands: Commands, version: string, width: number): string {
  const indent = Math.max(...Object.keys(commands).map((name) => name.length)) + 4
  const rows = Object.entries(commands).map(([name, { summary }]) =>
    filled(`  ${name}`.padEnd(indent), summary.split(" "), { indent, width }),
  )
  return [
    `Umpire ${version}: typed decisions and inference, self-hosted.`,
    "",
    "Commands:",
    ...rows,
    "",
    "Run umpire <command> --help for its options.",
    "",
  ].join("\n")
}

const optionColumns = 34

function help(
  name: string,
  { summary, usage, options, width }: Pick<Command, "usage" | "options"> & { summary: string; width: number },
): string {
  const notesAt = usage.includes("") ? usage.indexOf("") : usage.length
  const lines = usage.map((line, at) =>
    at < notesAt
      ? filled("  ", line.split(usageBreak), { indent: 6, width })
      : filled("  ", line.split(" "), { indent: 2, width }).trimEnd(),
  )
  const flags = Object.entries(options).map(([option, { type, short, help: means }]) => {
    const flag = `  ${short ? `-${short}, ` : ""}--${option}${type === "string" ? " <value>" : ""}`
    return filled(flag.padEnd(optionColumns), means.split(" "), { indent: optionColumns, width })
  })
  return [`umpire ${name}: ${summary}`, "", ...lines, "", "Options:", ...flags, ""].join("\n")
}

/** Before an option: it stays with its value. */
const usageBreak = / (?=\[|--)/

/** Lines of the parts, as many in each as fit; those after the first are indented. */
function filled(
  start: string,
  parts: readonly string[],
  { indent, width }: { readonly indent: number; readonly width: number },
): string {
  const lines: string[] = []
  let line = start
  let isEmpty = true
  for (const part of parts) {
    if (!isEmpty && line.length + 1 + part.length > width) {
      lines.push(line)
      line = " ".repeat(indent)
      isEmpty = true
    }
    line += isEmpty ? part : ` ${part}`
    isEmpty = false
  }
  return [...lines, line].join("\n")
}

function print({ stdout }: Surroundings, text: string): number {
  stdout.write(text)
  return 0
}

function readArguments(
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
