/** `umpire connect`: points a client at this server, keeps a backup of its configuration, and shows the difference. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { diff } from "node:util"
import { type CliContext, type Command, UsageError, flagOption, text, valueOption } from "./command.ts"
import { type Connection, connectedClients } from "./connect-clients.ts"
import { serverOptions, urlOf } from "./server-options.ts"

const names = Object.keys(connectedClients).join("|")

export const connect: Command = {
  usage: [`umpire connect ${names} [--url http://127.0.0.1:8484] [--model umpire-chat] [--dry-run]`],
  options: {
    url: valueOption(serverOptions.url.help),
    model: valueOption("the model that the client asks; defaults to umpire-chat", "m"),
    "dry-run": flagOption("show the difference and write nothing"),
  },
  run: async (context) => run(context),
}

function run(context: CliContext): number {
  const [name = ""] = context.positionals
  const client = Object.hasOwn(connectedClients, name) ? connectedClients[name] : undefined
  if (!client)
    throw new UsageError(
      `which client? umpire connect ${names}; a model's server is connected by umpire models connect`,
    )
  const home = context.environment["HOME"] ?? context.environment["USERPROFILE"]
  if (home === undefined && !client.isLocal) throw new UsageError("there is no home directory: set HOME")
  const place = client.isLocal ? context.workingDirectory : (home ?? "")
  const { formerly } = client
  if (formerly)
    rewrite(context, join(place, formerly.file), (before) =>
      before === undefined ? undefined : formerly.remove(before),
    )
  const path = join(place, client.file)
  const isChanged = rewrite(context, path, (before) => client.write(before, connectionOf(context)))
  if (!isChanged) context.stdout.write(`${path} already says so.\n`)
  else if (context.values["dry-run"] !== true)
    context.stdout.write(`The key is read from UMPIRE_API_KEY. Next: ${client.next}\n`)
  return 0
}

/** Shows the difference, keeps a backup, and returns whether there is a difference. */
function rewrite(
  { stdout, values }: CliContext,
  path: string,
  write: (before: string | undefined) => string | undefined,
): boolean {
  const before = existsSync(path) ? readFileSync(path, "utf8") : undefined
  const after = written(path, () => write(before))
  if (after === undefined || after === before) return false
  stdout.write(`${path}:\n${hideSecrets(drawDifference(before ?? "", after))}\n`)
  if (values["dry-run"] === true) return true
  const backup = before === undefined ? null : keepBackup(path)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, after)
  if (backup !== null) stdout.write(`What it said before is in ${backup}.\n`)
  return true
}

/** Beside the file, with its mode; what an earlier run kept stays. */
function keepBackup(path: string): string {
  const first = `${path}.before-umpire`
  let backup = first
  for (let n = 2; existsSync(backup); n++) backup = `${first}.${n}`
  copyFileSync(path, backup, constants.COPYFILE_EXCL)
  return backup
}

function connectionOf(context: CliContext): Connection {
  return {
    url: urlOf(context),
    model: text(context, "model") ?? "umpire-chat",
    keyVariable: "UMPIRE_API_KEY",
  }
}

function written<Text>(path: string, write: () => Text): Text {
  try {
    return write()
  } catch (cause) {
    throw new UsageError(`cannot read ${path}: ${cause instanceof Error ? cause.message : "it is damaged"}`)
  }
}

const linesMax = 5_000

const marks = { "1": "-", "0": " ", "-1": "+" } as const

const linesOf = (text: string): string[] => text.split("\n").slice(0, linesMax)

/** By whole lines, with three unchanged ones around each change. */
function drawDifference(before: string, after: string): string {
  const lines = diff(linesOf(before), linesOf(after)).map(([side, line]) => `${marks[side]} ${line}`)
  return nearChanges(lines).join("\n")
}

function nearChanges(lines: readonly string[]): string[] {
  const context = 3
  return lines.filter((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some((line) => !line.startsWith("  ")),
  )
}

const secretName = "(?:key|token|secret|password|credential|auth)"
/** A reference to a variable is no secret, nor is the name of one. */
const notSecret = String.raw`(?!\$\{|"UMPIRE_API_KEY")`
const assignment = new RegExp(String.raw`^(.*?${secretName}[\w.-]*\s*=\s*)${notSecret}\S.*$`, "gim")
const member = new RegExp(String.raw`("[^"]*${secretName}[^"]*"\s*:\s*)"(?:[^"\\]|\\.)+"`, "gi")
const addressPassword = /(:\/\/[^\s:@/]*):[^\s@/]+@/g

/** A difference may be pasted or recorded: values that their names or places call secret are left out. */
const hideSecrets = (text: string): string =>
  text.replace(member, '$1"..."').replace(assignment, "$1...").replace(addressPassword, "$1:...@")
