/** Which server a command asks, and with which key: its options, their help, and what they or the environment say. */
import { type CliContext, UsageError, flagOption, text, valueOption } from "./command.ts"

const defaultPort = "8484"
const portMax = 65_535

/** The options of every command that asks a server. */
export const serverOptions = {
  url: valueOption(
    `the server (UMPIRE_URL, else http://127.0.0.1 and UMPIRE_PORT, ${defaultPort} by default)`,
  ),
  key: valueOption("the API key; better given as UMPIRE_API_KEY"),
  json: flagOption("print JSON"),
} as const

/** The options of commands that act in an organization. */
export const apiOptions = {
  organization: valueOption("the organization, where the key belongs to a user of several", "o"),
  ...serverOptions,
} as const

/** The server that the options or the environment name. */
export function serverOf(context: CliContext): { readonly url: string; readonly key: string } {
  const key = text(context, "key") ?? context.environment["UMPIRE_API_KEY"]
  if (!key) throw new UsageError("no API key: set UMPIRE_API_KEY, or make one with umpire keys create")
  return { url: urlOf(context), key }
}

/** Without a slash at its end, and without the `/v1` that OpenAI's clients have in theirs. */
export function urlOf(context: CliContext): string {
  const option = text(context, "url")
  const given = option ?? (context.environment["UMPIRE_URL"] || undefined)
  if (given === undefined) return `http://127.0.0.1:${portOf(context)}`
  const source = option === undefined ? "UMPIRE_URL" : "--url"
  if (!/^https?:\/\//i.test(given))
    throw new UsageError(
      given.includes("://")
        ? `${source} ${given}: the address begins with http:// or https://`
        : `${source} ${given}: http:// is missing; write it as http://${given || "127.0.0.1:8484"}`,
    )
  if (!URL.canParse(given)) throw new UsageError(`${source} ${given} is no address`)
  return given.replace(/\/+$/, "").replace(/\/v1$/, "")
}

/** The variable that the server listens by; 0 is a port that the server chose itself. */
function portOf({ environment }: CliContext): string {
  const given = environment["UMPIRE_PORT"] || defaultPort
  if (!/^\d{1,5}$/.test(given) || Number(given) > portMax)
    throw new UsageError(`UMPIRE_PORT ${given} is no port: give a number up to ${portMax}, or set UMPIRE_URL`)
  return Number(given) === 0 ? defaultPort : given
}
