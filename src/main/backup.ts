/**
 * Takes a backup of a server, running or not, and restores one into an empty data directory and database.
 *
 * The order makes it consistent: the journal is opened, then the rows are read in one snapshot, then the events are
 * copied, and the journal is read last. So the journal holds everything that the rows and the events do not, and a start
 * on the restored directory applies it, each record once.
 */
import { existsSync } from "node:fs"
import { mkdir, rm } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { welcomeFile } from "../cli/welcome.ts"
import type { CallOf, Handlers, OutputOf } from "../contract/endpoint.ts"
import type { BackupOperatorTable } from "../contract/operator.ts"
import {
  type ArchiveWriter,
  BackupUnusable,
  backupFormat,
  readArchive,
  readHeader,
  writeArchive,
} from "../store/backup/archive.ts"
import { appendPiece, listFiles, openFiles } from "../store/backup/files.ts"
import {
  appliedMigrations,
  dumpRows,
  loadRows,
  migrationsOf,
  moveSequences,
  refuseUsed,
} from "../store/backup/rows.ts"
import { lockDirectory } from "../store/directory-lock.ts"
import type { Events } from "../store/events/events.ts"
import { migrate } from "../store/migrate.ts"
import { openDatabase } from "../store/open.ts"
import { column, part, run } from "../store/rows.ts"
import type { Database } from "../store/sql.ts"
import { contentKeyFile } from "./content.ts"
import { version } from "./package-files.ts"

interface BackupDeps {
  readonly config: Config
  readonly database: Database
  /** Null where no events are kept, or not here. */
  readonly events: Events | null
  readonly clock: Clock
}

const eventsFile = "analytics/events.duckdb"
/** Written by the database and the analytics process; a copy of the files as they are would be torn. */
const copiedOtherwise = ["database/", "analytics/events.duckdb"]
/** Models and the build for GPUs are large and can be added again. */
const isLarge = (name: string): boolean => /^models\/.*\.(?:gguf|onnx)$|^gpu\//.test(name)

export const backupHandlers = (deps: BackupDeps): Handlers<BackupOperatorTable> => ({
  takeBackup: async ({ body }) => await takeBackup(deps, body),
})

async function takeBackup(
  deps: BackupDeps,
  { file, with_content_key }: CallOf<BackupOperatorTable["takeBackup"]>["body"],
): Promise<OutputOf<BackupOperatorTable["takeBackup"]>> {
  const { config, database, clock } = deps
  const header = {
    format: backupFormat,
    version,
    created_at: new Date(clock.nowMs()).toISOString(),
    migrations: await appliedMigrations(database),
  } as const
  const leftOut = with_content_key ? [welcomeFile] : [welcomeFile, contentKeyFile]
  const names = (await listFiles(config.data_dir)).filter(
    (name) =>
      !isLarge(name) && !leftOut.includes(name) && !copiedOtherwise.some((prefix) => name.startsWith(prefix)),
  )
  const files = await openFiles(config.data_dir, names)
  try {
    const count = await writeArchive(file, header, async (writer) => {
      await dumpRows(database, writer)
      // In the data directory, which only its owner can read; its name keeps it out of backups.
      await copyEvents(deps, join(resolve(config.data_dir), `${eventsFile}.${basename(file)}`), writer)
      await files.write(writer)
      await newSegments(config.data_dir, names, writer)
    })
    return { file, rows: count.rows, created_at: header.created_at }
  } finally {
    await files.close()
  }
}

/** Of the journals, those begun since the first look. */
async function newSegments(folder: string, known: readonly string[], writer: ArchiveWriter): Promise<void> {
  const now = await listFiles(folder)
  const added = now.filter((name) => /^(?:journal|content)\//.test(name) && !known.includes(name))
  const files = await openFiles(folder, added)
  await files.write(writer)
  await files.close()
}

async function copyEvents(
  { config, events }: BackupDeps,
  copy: string,
  writer: ArchiveWriter,
): Promise<void> {
  if (!events || config.analytics.clickhouse_url !== undefined) return
  if (!existsSync(join(config.data_dir, eventsFile))) return
  try {
    await events.ask("copy", { file: copy })
    const file = await openFiles(dirname(copy), [basename(copy)])
    await file.write({ ...writer, piece: async (_name, data) => await writer.piece(eventsFile, data) })
    await file.close()
  } finally {
    await rm(copy, { force: true })
  }
}

/** The next start applies what the journal holds beyond the rows, and the migrations that are newer than the backup. */
export async function restoreBackup(
  config: Config,
  file: string,
): Promise<{ rows: number; created_at: string }> {
  const header = await readHeader(file)
  const migrations = await migrationsOf(header)
  await refuseInUse(config)
  // To its end, so that nothing is made from half a backup.
  await readArchive(file, async () => undefined)
  await mkdir(config.data_dir, { recursive: true, mode: 0o700 })
  const database = await openDatabase(config)
  let rows = 0
  try {
    await refuseUsed(database)
    // Later migrations run at the next start, on the rows of this one.
    await migrate(database, migrations)
    await readArchive(file, async (part, text) => {
      if ("rows" in part) {
        rows += part.rows.length
        await loadRows(database, part.table, text)
      } else await appendPiece(resolve(config.data_dir), part.file, part.data)
    })
    await moveSequences(database)
    await forgetOtherGateways(database)
  } finally {
    await database.close()
  }
  return { rows, created_at: header.created_at }
}

/** What runs on from a backup is another installation: gateways of before, whose journals it lacks, hold no credit there. */
async function forgetOtherGateways(database: Database): Promise<void> {
  for (const table of ["leases", "gateways"])
    if (await column.boolean.one(database)`SELECT to_regclass(${table}) IS NOT NULL`)
      await run(database)`DELETE FROM ${part(table)}`
}

/** Files of another installation must not be mixed with the restored ones. */
async function refuseInUse({ data_dir }: Config): Promise<void> {
  const journal = join(data_dir, "journal")
  if (existsSync(journal)) await (await lockDirectory(journal)).release()
  const there = await listFiles(data_dir)
  const used = there.find((name) => !isLarge(name))
  if (used !== undefined)
    throw new BackupUnusable(
      `Cannot restore into ${data_dir}: it is not empty (${used}); name another directory with UMPIRE_DATA_DIR`,
    )
}
