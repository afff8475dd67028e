/** `umpire restore`: fills an empty data directory and database from a backup. */
import { resolve } from "node:path"
import { loadConfig } from "../base/config.ts"
import { type Command, UsageError, flagOption, show } from "./command.ts"
import { plural } from "../base/plural.ts"

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
