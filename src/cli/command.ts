/** What a command of the CLI is, and what it is given. */
import type { ParseArgsConfig } from "node:util"

type Options = NonNullable<ParseArgsConfig["options"]>

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
  /** Lines shown by --help. */
  readonly usage: readonly string[]
  readonly options: Options
  /** What each option means, for --help. */
  readonly optionHelp: Readonly<Record<string, string>>
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

/** Every value of an option that may be repeated. */
export function texts(context: CliContext, option: string): string[] {
  const value = context.values[option]
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
}

/** Prints a result: as JSON where that is asked for, else drawn for people. Answers the exit status of success. */
export function show(context: CliContext, result: unknown, draw: (result: unknown) => string): number {
  context.stdout.write(context.values["json"] === true ? `${JSON.stringify(result)}\n` : draw(result))
  return 0
}
