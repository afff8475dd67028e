/** Files of organizations, and the blobs behind them: a blob is stored once for all files, batches and parts that name it. */
import { column, part, row, type RowOf, run, runCounted, table } from "../rows.ts"
import { type Page, toPage } from "../pages.ts"
import type { Database, Sql, Transaction } from "../sql.ts"
import { BlobDamaged, type FileStorage, type StagedBlob } from "./storage.ts"

const File = table("files", {
  id: column.text,
  organizationId: column.text,
  storage: column.text,
  sha256: column.text,
  bytes: column.bigint,
  filename: column.text,
  purpose: column.oneOf("batch", "user_data", "batch_output"),
  createdAt: column.timestamp,
  expiresAt: column.timestamp,
})
export type File = RowOf<typeof File>

type NewFile = Omit<File, "storage" | "sha256" | "bytes">

/** Time to name a blob after it was placed. */
const placedMsMax = 3_600_000

/** Makes the blob readable. No sweep takes it before it is named; a storage elsewhere is not waited for in a transaction. */
export async function placeBlob(
  database: Database,
  storage: FileStorage,
  organizationId: string,
  blob: StagedBlob,
  now: Date,
): Promise<void> {
  await run(database)`INSERT INTO file_blobs AS b (organization_id, storage, sha256, bytes, kept_until)
    VALUES (${organizationId}, ${storage.id}, ${blob.sha256}, ${blob.bytes},
      ${new Date(now.getTime() + placedMsMax)})
    ON CONFLICT (organization_id, storage, sha256) DO UPDATE SET kept_until = EXCLUDED.kept_until`
  await blob.place(organizationId)
}

/** For a blob that was placed: from now on it stays as long as what names it. */
export const nameBlob = (
  sql: Transaction,
  storage: FileStorage,
  organizationId: string,
  { sha256 }: Pick<StagedBlob, "sha256">,
) =>
  run(sql)`UPDATE file_blobs SET kept_until = NULL
    WHERE organization_id = ${organizationId} AND storage = ${storage.id} AND sha256 = ${sha256}`

/** Its blob must have been placed. */
export async function insertFile(
  sql: Transaction,
  storage: FileStorage,
  file: NewFile,
  blob: StagedBlob,
): Promise<File> {
  await nameBlob(sql, storage, file.organizationId, blob)
  const { sha256 } = blob
  return await File.insert(sql, { ...file, storage: storage.id, sha256, bytes: BigInt(blob.bytes) })
}

/** What the files of an organization take. Uploads of one organization that end at once are counted one after the other. */
export async function lockUsedBytes(sql: Transaction, organizationId: string): Promise<bigint> {
  await run(sql)`SELECT id FROM organizations WHERE id = ${organizationId} FOR NO KEY UPDATE`
  return await sumBytes(sql, organizationId)
}

export const sumBytes = (sql: Sql, organizationId: string) =>
  column.bigint.one(sql)`SELECT coalesce(sum(bytes), 0) FROM files
    WHERE organization_id = ${organizationId}`

export const findFile = (sql: Sql, organizationId: string, id: string, now: Date) =>
  File.find(sql)`organization_id = ${organizationId} AND id = ${id} AND expires_at > ${now}`

interface FileQuery {
  readonly limit: number
  readonly order: "asc" | "desc"
  readonly after?: string | undefined
  readonly purpose?: string | undefined
}

export async function pageFiles(
  sql: Sql,
  organizationId: string,
  { limit, order, after, purpose }: FileQuery,
  now: Date,
): Promise<Page<File>> {
  const beyond = order === "asc" ? ">" : "<"
  const files = await File.list(sql)`organization_id = ${organizationId} AND expires_at > ${now}
      AND (${after ?? null}::text IS NULL OR id ${part(beyond)} ${after ?? null})
    AND (${purpose ?? null}::text IS NULL OR purpose = ${purpose ?? null})
    ORDER BY id ${part(order)} LIMIT ${limit + 1}`
  return toPage(files, limit, ({ id }) => id)
}

/** Its bytes go with the next sweep, unless something else names them. */
export const deleteFile = async (sql: Sql, organizationId: string, id: string) =>
  (await runCounted(sql)`DELETE FROM files WHERE organization_id = ${organizationId} AND id = ${id}
    RETURNING id`) > 0

/** With the organization: its bytes go with the next sweep. */
export async function deleteFilesOf(sql: Sql, organizationId: string): Promise<void> {
  await run(sql)`DELETE FROM batches WHERE organization_id = ${organizationId}`
  await run(sql)`DELETE FROM files WHERE organization_id = ${organizationId}`
}

const dayMs = 86_400_000
/** An ended batch is forgotten after this. */
const batchesKeptMs = 90 * dayMs

/** Removes what has expired and what deleted organizations had, then blobs of this storage that nothing names any more. */
export async function sweepFiles(database: Database, storage: FileStorage, now: Date): Promise<void> {
  const deleted = "SELECT id FROM organizations WHERE deleted_at IS NOT NULL"
  await run(database)`DELETE FROM batches WHERE finished_at < ${new Date(now.getTime() - batchesKeptMs)}
    OR organization_id IN (${part(deleted)})`
  await run(database)`DELETE FROM files WHERE expires_at <= ${now} OR organization_id IN (${part(deleted)})`
  await removeOrphans(database, storage, now)
}

/** One at a time: an upload of the same bytes meanwhile waits until they are gone, and places them again. */
export async function removeOrphans(database: Database, storage: FileStorage, now: Date): Promise<void> {
  while (await removeOrphan(database, storage, now));
}

const Blob = row({ organizationId: column.text, sha256: column.text })

/** False when there is none. */
async function removeOrphan(database: Database, storage: FileStorage, now: Date): Promise<boolean> {
  return await database.transaction(async (sql) => {
    const orphan = await Blob.first(sql)`SELECT organization_id, sha256 FROM file_blobs b
      WHERE storage = ${storage.id} AND (kept_until IS NULL OR kept_until <= ${now})
        AND NOT EXISTS (SELECT 1 FROM files f WHERE f.organization_id = b.organization_id
          AND f.storage = b.storage AND f.sha256 = b.sha256)
        AND NOT EXISTS (SELECT 1 FROM batches a WHERE a.organization_id = b.organization_id
          AND a.storage = b.storage AND a.input_sha256 = b.sha256)
        AND NOT EXISTS (SELECT 1 FROM batch_parts p WHERE p.organization_id = b.organization_id
          AND p.storage = b.storage AND p.result_sha256 = b.sha256)
      LIMIT 1 FOR UPDATE SKIP LOCKED`
    if (!orphan) return false
    const { organizationId, sha256 } = orphan
    await run(sql)`DELETE FROM file_blobs WHERE organization_id = ${organizationId}
      AND storage = ${storage.id} AND sha256 = ${sha256}`
    await storage.remove({ organizationId, sha256 }, sql)
    return true
  })
}

/**
 * Moves what lies in one storage to another, as when gateways begin to share one. Nothing may run batches meanwhile; what breaks off
 * goes on with the next call. Returns how many blobs were moved; damaged ones stay.
 */
export async function moveBlobs(
  database: Database,
  { from, to, now }: { readonly from: FileStorage; readonly to: FileStorage; readonly now: Date },
): Promise<number> {
  let moved = 0
  const blobs = await Blob.all(database)`SELECT organization_id, sha256 FROM file_blobs
    WHERE storage = ${from.id} ORDER BY organization_id, sha256`
  for (const name of blobs) {
    const staged = await to.stage(from.read(name)).catch((error: unknown) => {
      if (error instanceof BlobDamaged) return null
      throw error
    })
    if (!staged) continue
    try {
      await placeBlob(database, to, name.organizationId, staged, now)
      await database.transaction(async (sql) => {
        await nameBlob(sql, to, name.organizationId, staged)
        for (const [named, sha256] of namingBlobs)
          await run(
            sql,
          )`UPDATE ${part(named)} SET storage = ${to.id} WHERE organization_id = ${name.organizationId}
            AND storage = ${from.id} AND ${part(sha256)} = ${name.sha256}`
        await run(sql)`DELETE FROM file_blobs
          WHERE organization_id = ${name.organizationId} AND storage = ${from.id} AND sha256 = ${name.sha256}`
        await from.remove(name, sql)
      })
    } finally {
      await staged.discard()
    }
    moved++
  }
  for (const [named, sha256] of namingBlobs)
    await run(database)`UPDATE ${part(named)} SET storage = ${to.id}
      WHERE storage = ${from.id} AND ${part(sha256)} IS NULL`
  return moved
}

/** Tables, and the column of each that names the bytes. */
const namingBlobs = [
  ["files", "sha256"],
  ["batches", "input_sha256"],
  ["batch_parts", "result_sha256"],
] as const
