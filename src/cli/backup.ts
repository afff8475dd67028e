/** `umpire backup`: writes everything that is kept into one file, while the server runs or not. */
import { resolve } from "node:path"
import type { OpenOperator } from "./actions.ts"
import { type Command, flagOption, required, show } from "./command.ts"
import { plural } from "../base/plural.ts"

export const backup = (open: OpenOperator): Command => ({
  usage: ["umpire backup umpire-2026-01-01.backup"],
  options: { json: flagOption("print JSON") },
  run: async (context) => {
    const given = required(context.positionals[0], "into which file? umpire backup FILE")
    const operator = await open(context)
    try {
      const body = { file: resolve(context.workingDirectory, given) }
      const taken = await operator.client.takeBackup({ body })
      return show(
        context,
        taken,
        () =>
          `${taken.file} holds ${plural(taken.rows, "row")}, the journal and the events, as of ${taken.created_at}. It contains texts of customers and hashes of secrets: keep it safe.\n`,
      )
    } finally {
      await operator.close()
    }
  },
})
