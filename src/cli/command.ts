/** What a command of the CLI is, and what it is given. */
/** An option as `parseArgs` reads it, and what it means, for --help. */
export interface CliOption {
  readonly type: "string" | "boolean"
  readonly short?: string
  readonly multiple?: boolean
  readonly help: string
}

const optionOf = (option: CliOption, short: string | undefined): CliOption =>
  short === undefined ? option : { ...option, short }

/** An option that takes a value. */
export const valueOption = (help: string, short?: string): CliOption =>
  optionOf({ type: "string", help }, short)

/** An option that takes a value and may be repeated. */
export const listOption = (help: string, short?: string): CliOption =>
  optionOf({ type: "string", multiple: true, help }, short)

/** An option that is given or not. */
export const flagOption = (help: string, short?: string): CliOption =>
  optionOf({ type: "boolean", help }, short)

export interface CliContext {
  readonly positionals: readonly string[]
  readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: NodeJS.WritableStream
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
}

export interface Command {
  /** Shown by --help: calls, and behind an empty line what is to be known of them, a paragraph each. */
  readonly usage: readonly string[]
  readonly options: Readonly<Record<string, CliOption>>
  /** Answers the exit status. */
  run(context: CliContext): Promise<number>
}

/** A mistake of the person at the keyboard: its sentence is printed without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError"
}

/** The string value of an option, if it was given. */
export function text(context: CliContext, option: string): string | undefined {
  const value = context.values[option]
  return typeof value === "string" ? value : undefined
}

/** The value of an option that takes one of a few words, if it was given. */
export function oneOf<Word extends string>(
  context: CliContext,
  option: string,
  words: readonly Word[],
): Word | undefined {
  const value = text(context, option)
  const word = words.find((one) => one === value)
  if (value !== undefined && word === undefined)
    throw new UsageError(`--${option} takes one of ${words.join(", ")}`)
  return word
}

/** The same of an option that may be repeated; empty where it was not given. */
export function manyOf<Word extends string>(
  context: CliContext,
  option: string,
  words: readonly Word[],
): Word[] {
  return texts(context, option).map((value) => {
    const word = words.find((one) => one === value)
    if (word === undefined) throw new UsageError(`--${option} takes one of ${words.join(", ")}, not ${value}`)
    return word
  })
}

/** Which numbers an option takes, and how its sentence says so. */
interface Numbers {
  readonly takes: string
  readonly fits: (value: number) => boolean
}

const anyNumber: Numbers = { takes: "a number", fits: () => true }

export const numbersBetween = (min: number, max: number): Numbers => ({
  takes: `a number from ${min} to ${max}`,
  fits: (value) => value >= min && value <= max,
})

export const wholeNumbersFrom = (min: number, max = 1_000_000_000): Numbers => ({
  takes: `a whole number from ${min} to ${max}`,
  fits: (value) => Number.isInteger(value) && value >= min && value <= max,
})

/** The value of an option that takes a number, if it was given. */
export function numberOf(context: CliContext, option: string, numbers = anyNumber): number | undefined {
  const given = text(context, option)
  if (given === undefined) return undefined
  const value = given.trim() === "" ? NaN : Number(given)
  if (!Number.isFinite(value) || !numbers.fits(value))
    throw new UsageError(`--${option} takes ${numbers.takes}`)
  return value
}

/** What must be there; `question` asks for it where it is not. */
export function required<Value>(value: Value | undefined, question: string): Value {
  if (value === undefined) throw new UsageError(question)
  return value
}

/** `name=value`, where the name is not empty; `question` asks for one where it is not given so. */
export function pairOf(given: string | undefined, question: string): readonly [name: string, value: string] {
  const at = given?.indexOf("=") ?? -1
  if (given === undefined || at < 1) throw new UsageError(question)
  return [given.slice(0, at), given.slice(at + 1)]
}

/** Of operators' commands in an organization. */
export const organizationOption = valueOption("the organization, where there are several", "o")

/** Every value of an option that may be repeated. */
export function texts(context: CliContext, option: string): string[] {
  const value = context.values[option]
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
}

/** Prints a result: as JSON where that is asked for, else drawn for people. Answers the exit status of success. */
export function show<Result>(context: CliContext, result: Result, draw: (result: Result) => string): number {
  context.stdout.write(context.values["json"] === true ? `${JSON.stringify(result)}\n` : draw(result))
  return 0
}
