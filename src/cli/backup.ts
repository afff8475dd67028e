/** `umpire backup` writes everything that is kept into one file, while the server runs or not; `umpire restore` fills an empty data directory and database from it. */
import { resolve } from "node:path"
import type { OpenOperator } from "./actions.ts"
import { type Command, flagOption, required, show, UsageError } from "./command.ts"
import { plural } from "../base/plural.ts"
import { loadConfig } from "../base/config.ts"

export const backup = (open: OpenOperator): Command => ({
  usage: ["umpire backup umpire-2026-01-01.backup [--without-content-key]"],
  options: {
    json: flagOption("print JSON"),
    "without-content-key": flagOption("leave content.key out: kept content is read only with a copy of it"),
  },
  run: async (context) => {
    const given = required(context.positionals[0], "into which file? umpire backup FILE")
    const operator = await open(context)
    try {
      const body = {
        file: resolve(context.workingDirectory, given),
        with_content_key: context.values["without-content-key"] !== true,
      }
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

type Restore = (
  config: ReturnType<typeof loadConfig>,
  file: string,
) => Promise<{ readonly rows: number; readonly created_at: string }>

export const restore = (run: Restore): Command => ({
  usage: ["UMPIRE_DATA_DIR=.restored umpire restore umpire-2026-01-01.backup"],
  options: { json: flagOption("print JSON") },
  run: async (context) => {
    const [file] = context.positionals
    if (!file) throw new UsageError("from which file? umpire restore FILE")
    const config = loadConfig(context.environment, context.workingDirectory)
    const restored = await run(config, resolve(context.workingDirectory, file))
    const draw = (): string =>
      `${config.data_dir} is as of ${restored.created_at} (${plural(restored.rows, "row")}). umpire serve starts it.\n`
    return show(context, { data_dir: config.data_dir, ...restored }, draw)
  },
})
