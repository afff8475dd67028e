/**
 * A backup file: gzip of one JSON object a line. First what it is a backup of, then rows of tables and pieces of files,
 * last how many of each there were, and the SHA-256 of all lines before, so that a file that broke off or was changed is told from
 * a whole one.
 */
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createReadStream, createWriteStream } from "node:fs"
import { rename, rm } from "node:fs/promises"
import { finished, pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import { parsedJson } from "../../base/json.ts"
import { readLines } from "../lines.ts"

export const backupFormat = 1

export interface BackupHeader {
  readonly format: typeof backupFormat
  /** The version of Umpire that wrote it. */
  readonly version: string
  readonly created_at: string
  /** The migrations of its database, by version. */
  readonly migrations: readonly number[]
}

export type BackupPart =
  | { readonly table: string; readonly rows: readonly unknown[] }
  | { readonly file: string; readonly data: string }

interface BackupEnd {
  /** Backups of before 0.3 have no checksum. */
  readonly end: { readonly rows: number; readonly pieces: number; readonly sha256?: string }
}

/** The file is not a backup, is damaged, or is of another version. */
export class BackupUnusable extends Error {
  override readonly name = "BackupUnusable"
}

export interface ArchiveWriter {
  /** Rows as JSON text, so that no number is read and written again. */
  rows(table: string, rows: readonly string[]): Promise<void>
  piece(file: string, data: Buffer): Promise<void>
}

/** The file appears under its name only when it is whole. */
export async function writeArchive(
  file: string,
  header: BackupHeader,
  fill: (writer: ArchiveWriter) => Promise<void>,
): Promise<{ rows: number; pieces: number }> {
  const partial = `${file}.partial`
  const gzip = createGzip({ level: 6 })
  // A file that is there already would keep its mode, and a link its target.
  await rm(partial, { force: true })
  const target = createWriteStream(partial, { flags: "wx", mode: 0o600, flush: true })
  const written = pipeline(gzip, target)
  // Awaited below; until then a failure of `fill` is the one to tell.
  written.catch(() => undefined)
  const count = { rows: 0, pieces: 0 }
  const hash = createHash("sha256")
  const line = async (text: string): Promise<void> => {
    hash.update(`${text}\n`)
    if (!gzip.write(`${text}\n`)) await Promise.race([once(gzip, "drain"), written])
  }
  try {
    await line(JSON.stringify(header))
    await fill({
      rows: async (table, rows) => {
        count.rows += rows.length
        await line(`{"table":${JSON.stringify(table)},"rows":[${rows.join(",")}]}`)
      },
      piece: async (name, data) => {
        count.pieces++
        await line(JSON.stringify({ file: name, data: data.toString("base64") }))
      },
    })
    await line(JSON.stringify({ end: { ...count, sha256: hash.copy().digest("hex") } } satisfies BackupEnd))
    gzip.end()
    await written
    await rename(partial, file)
    return count
  } catch (error) {
    gzip.destroy()
    await finished(target).catch(() => undefined)
    await rm(partial, { force: true })
    throw error
  }
}

export async function readHeader(file: string): Promise<BackupHeader> {
  for await (const text of linesOf(file)) return headerOf(file, text)
  throw new BackupUnusable(`Cannot read ${file}: it is empty`)
}

/** Yields the parts in order, each as the text of its line and as parsed. */
export async function readArchive(
  file: string,
  take: (part: BackupPart, text: string) => Promise<void>,
): Promise<void> {
  const count = { rows: 0, pieces: 0 }
  const hash = createHash("sha256")
  let end: BackupEnd["end"] | undefined
  let isFirst = true
  for await (const text of linesOf(file)) {
    if (end) throw new BackupUnusable(`Cannot use ${file}: something follows its end; take another backup`)
    if (isFirst) headerOf(file, text)
    else {
      // What writeArchive wrote: the format of the header says so.
      const part: BackupPart | BackupEnd = JSON.parse(text)
      if ("end" in part) ({ end } = part)
      else {
        if ("rows" in part) count.rows += part.rows.length
        else count.pieces++
        await take(part, text)
      }
    }
    if (!end) hash.update(`${text}\n`)
    isFirst = false
  }
  if (end?.rows !== count.rows || end.pieces !== count.pieces)
    throw new BackupUnusable(`Cannot use ${file}: it broke off; take another backup`)
  if (end.sha256 !== undefined && end.sha256 !== hash.digest("hex"))
    throw new BackupUnusable(`Cannot use ${file}: its checksum is wrong, it was changed; take another backup`)
}

function headerOf(file: string, text: string): BackupHeader {
  // Of another version it may lack a field; what is no backup has none.
  const header = parsedJson(text) as Partial<BackupHeader> | undefined
  if (header?.format === undefined || header.migrations === undefined)
    throw new BackupUnusable(`Cannot read ${file}: it is not a backup of Umpire`)
  if (header.format !== backupFormat)
    throw new BackupUnusable(
      `Cannot read ${file}: version ${header.version} made it; use that or a later one`,
    )
  // As writeArchive of this format wrote it.
  return header as BackupHeader
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const source = createReadStream(file)
  const gunzip = createGunzip()
  const piped = pipeline(source, gunzip)
  // The reading of lines below fails with the same error.
  piped.catch(() => undefined)
  try {
    yield* readLines(gunzip)
    await piped
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new BackupUnusable(`Cannot read ${file}: ${reason}`, { cause })
  } finally {
    source.destroy()
    gunzip.destroy()
  }
}
