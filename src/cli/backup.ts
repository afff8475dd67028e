/** `umpire backup`: writes everything that is kept into one file, while the server runs or not. */
import { resolve } from "node:path"
import { type CliContext, type Command, UsageError, show } from "./command.ts"
import type { Operate } from "./operator.ts"

export const backup = (operate: (context: CliContext) => Operate): Command => ({
  usage: ["umpire backup umpire-2026-01-01.backup"],
  options: { json: { type: "boolean" } },
  optionHelp: { json: "print JSON" },
  run: async (context) => {
    const [file] = context.positionals
    if (!file) throw new UsageError("into which file? umpire backup FILE")
    const target = resolve(context.workingDirectory, file)
    return show(context, await operate(context)("backup", { file: target }), draw)
  },
})

function draw(result: unknown): string {
  // What the operation answers.
  const { file, rows, created_at } = result as { file: string; rows: number; created_at: string }
  return `${file} holds ${rows} rows, the journal and the events, as of ${created_at}. It contains texts of customers and hashes of secrets: keep it safe.\n`
}
