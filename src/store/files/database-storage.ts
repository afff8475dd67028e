/** Files in the database that the gateways share: in pieces, so that neither side holds a whole file in memory. */
import { createHash } from "node:crypto"
import { column, part, run } from "../rows.ts"
import { type Database, isUniqueViolation } from "../sql.ts"
import { type BlobName, type ByteRange, type FileStorage, blobCut, blobGone, verified } from "./storage.ts"

const databaseStorageId = "database"

const mebibyte = 1024 * 1024
/** A row: small enough for a backup to read hundreds at once. */
const pieceBytes = 64 * 1024
/** Of one statement. */
const piecesAtOnce = 16
const stagingMsMax = 24 * 3_600_000
/** The numbers of pieces and their times to be read stay far from every bound. */
const blobBytesMax = 16 * 1024 * mebibyte

export async function openDatabaseStorage(database: Database, now: Date): Promise<FileStorage> {
  const abandonedAt = new Date(now.getTime() - stagingMsMax)
  await run(database)`DELETE FROM file_contents WHERE organization_id IS NULL AND staged_at < ${abandonedAt}`
  return {
    id: databaseStorageId,
    blobBytesMax,
    stage: async (pieces) => {
      const id = await column.bigint.one(
        database,
      )`INSERT INTO file_contents (staged_at) VALUES (now()) RETURNING id`
      const discard = async (): Promise<void> =>
        // What stays counts as abandoned.
        await run(database)`DELETE FROM file_contents WHERE id = ${id} AND organization_id IS NULL`.catch(
          () => undefined,
        )
      try {
        const written = await writePieces(database, id, pieces)
        return {
          ...written,
          place: async (organizationId) => await place(database, id, { organizationId, ...written }),
          discard,
        }
      } catch (error) {
        await discard()
        throw error
      }
    },
    read: (name, range) =>
      range ? readRange(database, name, range) : verified(readRange(database, name), name.sha256),
    remove: async ({ organizationId, sha256 }, sql) =>
      await run(sql)`DELETE FROM file_contents
        WHERE organization_id = ${organizationId} AND sha256 = ${sha256}`,
  }
}

async function writePieces(
  database: Database,
  id: bigint,
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256")
  let bytes = 0
  for await (const group of grouped(pieces, pieceBytes * piecesAtOnce)) {
    hash.update(group)
    await run(database)`INSERT INTO file_pieces (content_id, number, bytes)
      SELECT ${id}::bigint, ${bytes / pieceBytes}::integer + n,
        substring(given.bytes FROM n * ${part(String(pieceBytes))} + 1 FOR ${part(String(pieceBytes))})
      FROM (SELECT ${group}::bytea AS bytes) given,
        generate_series(0, (octet_length(given.bytes) - 1) / ${part(String(pieceBytes))}) n`
    bytes += group.length
  }
  return { sha256: hash.digest("hex"), bytes }
}

/** Of exactly so many bytes each, but the last. */
async function* grouped(pieces: AsyncIterable<Uint8Array>, groupBytes: number): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    waiting.push(piece)
    bytes += piece.length
    if (bytes < groupBytes) continue
    const all = Buffer.concat(waiting)
    let at = 0
    for (; bytes - at >= groupBytes; at += groupBytes) yield all.subarray(at, at + groupBytes)
    waiting = [all.subarray(at)]
    bytes -= at
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** Where the same bytes are there already, what was staged is left to be discarded. */
async function place(database: Database, id: bigint, { organizationId, sha256 }: BlobName): Promise<void> {
  try {
    await run(database)`UPDATE file_contents SET organization_id = ${organizationId}, sha256 = ${sha256}
      WHERE id = ${id} AND NOT EXISTS (
        SELECT 1 FROM file_contents WHERE organization_id = ${organizationId} AND sha256 = ${sha256})`
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
  }
}

async function* readRange(
  database: Database,
  { organizationId, sha256 }: BlobName,
  { start, length }: ByteRange = { start: 0, length: Infinity },
): AsyncGenerator<Uint8Array> {
  const id = await column.integer.first(database)`SELECT id FROM file_contents
    WHERE organization_id = ${organizationId} AND sha256 = ${sha256}`
  if (id === null) throw blobGone()
  for (let at = start, left = length; left > 0;) {
    const first = Math.floor(at / pieceBytes)
    const last = Math.min(first + piecesAtOnce - 1, Math.floor((at + left - 1) / pieceBytes))
    const found = await column.bytes.all(database)`SELECT bytes FROM file_pieces
      WHERE content_id = ${id} AND number BETWEEN ${first} AND ${last} ORDER BY number`
    const wanted = Buffer.concat(found)
      .subarray(at - first * pieceBytes)
      .subarray(0, left)
    if (wanted.length > 0) yield wanted
    at += wanted.length
    left -= wanted.length
    if (found.length <= last - first || wanted.length === 0) {
      if (length === Infinity || left === 0) return
      throw blobCut()
    }
  }
}
