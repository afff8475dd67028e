/** Which server a command asks, and with which key: its options, their help, and what they or the environment say. */
import { type CliContext, UsageError, text } from "./command.ts"

const defaultUrl = "http://127.0.0.1:8484"

/** The options of every command that asks a server. */
export const serverOptions = {
  url: { type: "string" },
  key: { type: "string" },
  json: { type: "boolean" },
} as const

export const serverHelp = {
  url: `the server (UMPIRE_URL, else ${defaultUrl})`,
  key: "the API key; better given as UMPIRE_API_KEY",
  json: "print JSON",
}

/** The options of commands that act in an organization. */
export const apiOptions = {
  organization: { type: "string", short: "o" },
  ...serverOptions,
} as const

export const apiHelp = {
  organization: "the organization, where the key belongs to a user of several",
  ...serverHelp,
}

/** The server that the options or the environment name. */
export function serverOf(context: CliContext): { readonly url: string; readonly key: string } {
  const key = text(context, "key") ?? context.environment["UMPIRE_API_KEY"]
  if (!key) throw new UsageError("no API key: set UMPIRE_API_KEY, or make one with umpire keys create")
  return { url: urlOf(context), key }
}

export const urlOf = (context: CliContext): string =>
  text(context, "url") ?? context.environment["UMPIRE_URL"] ?? defaultUrl
