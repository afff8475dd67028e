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
    return print(surroundings, overview(commands, version))
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
    return print(surroundings, help(name, entry.summary, command))
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

function overview(commands: Commands, version: string): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  const rows = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
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

function help(name: string, summary: string, command: Command): string {
  const options = Object.entries(command.options).map(([option, { type, short, help: means }]) => {
    const flag = `${short ? `-${short}, ` : ""}--${option}${type === "string" ? " <value>" : ""}`
    return `  ${flag.padEnd(32)}${means}`
  })
  return [
    `umpire ${name}: ${summary}`,
    "",
    ...command.usage.map((line) => `  ${line}`),
    "",
    "Options:",
    ...options,
    "",
  ].join("\n")
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
