/** `umpire connect`: points a client at this server, keeps a backup of its configuration, and shows the difference. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
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
  if (!client) throw new UsageError(`which client? umpire connect ${names}`)
  const home = context.environment["HOME"] ?? context.environment["USERPROFILE"]
  if (home === undefined && !client.isLocal) throw new UsageError("there is no home directory: set HOME")
  const path = join(client.isLocal ? context.workingDirectory : (home ?? ""), client.file)
  const before = existsSync(path) ? readFileSync(path, "utf8") : undefined
  const after = written(path, () => client.write(before, connectionOf(context)))
  const { stdout } = context
  if (after === before) {
    stdout.write(`${path} already says so.\n`)
    return 0
  }
  stdout.write(`${path}:\n${hideSecrets(drawDifference(before ?? "", after))}\n`)
  if (context.values["dry-run"] === true) return 0
  const backup = before === undefined ? null : keepBackup(path)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, after)
  if (backup !== null) stdout.write(`What it said before is in ${backup}.\n`)
  stdout.write(`The key is read from UMPIRE_API_KEY. Next: ${client.next}\n`)
  return 0
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

function written(path: string, write: () => string): string {
  try {
    return write()
  } catch (cause) {
    throw new UsageError(`cannot read ${path}: ${cause instanceof Error ? cause.message : "it is damaged"}`)
  }
}

const linesMax = 5_000

/** Longest common subsequence; whole lines, with three unchanged ones around each change. */
function drawDifference(before: string, after: string): string {
  const [old, next] = [before, after].map((text) => text.split("\n").slice(0, linesMax)) as [
    string[],
    string[],
  ]
  const common = commonLengths(old, next)
  const lines: string[] = []
  for (let i = 0, j = 0; i < old.length || j < next.length;) {
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push(`  ${old[i]}`)
      i++
      j++
    } else if (j < next.length && (i >= old.length || at(common, i, j + 1) > at(common, i + 1, j))) {
      lines.push(`+ ${next[j++]}`)
    } else lines.push(`- ${old[i++]}`)
  }
  return nearChanges(lines).join("\n")
}

/** By position: how many lines the rests have in common. */
function commonLengths(old: readonly string[], next: readonly string[]): number[][] {
  const table = Array.from({ length: old.length + 1 }, () => Array.from(next, () => 0))
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = next.length - 1; j >= 0; j--) {
      const row = table[i]
      if (row)
        row[j] =
          old[i] === next[j]
            ? at(table, i + 1, j + 1) + 1
            : Math.max(at(table, i + 1, j), at(table, i, j + 1))
    }
  return table
}

const at = (table: readonly (readonly number[])[], i: number, j: number): number => table[i]?.[j] ?? 0

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
