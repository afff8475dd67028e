/** Files of organizations, and the blobs behind them: a blob is stored once for all files, batches and parts that name it. */
import { type Page, toPage } from "../pages.ts"
import { type RowOf, bigint, oneOf, row, table, text, timestamp } from "../rows.ts"
import type { Database, Sql, Transaction } from "../sql.ts"
import type { FileStorage, StagedBlob } from "./storage.ts"

const File = table("files", {
  id: text,
  organizationId: text,
  storage: text,
  sha256: text,
  bytes: bigint,
  filename: text,
  purpose: oneOf("batch", "user_data", "batch_output"),
  createdAt: timestamp,
  expiresAt: timestamp,
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
  await database.query(
    `INSERT INTO file_blobs AS b (organization_id, storage, sha256, bytes, kept_until) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (organization_id, storage, sha256) DO UPDATE SET kept_until = EXCLUDED.kept_until`,
    [organizationId, storage.id, blob.sha256, blob.bytes, new Date(now.getTime() + placedMsMax)],
  )
  await blob.place(organizationId)
}

/** For a blob that was placed: from now on it stays as long as what names it. */
export async function nameBlob(
  sql: Transaction,
  storage: FileStorage,
  organizationId: string,
  { sha256 }: Pick<StagedBlob, "sha256">,
): Promise<void> {
  await sql.query(
    "UPDATE file_blobs SET kept_until = NULL WHERE organization_id = $1 AND storage = $2 AND sha256 = $3",
    [organizationId, storage.id, sha256],
  )
}

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
  await sql.query("SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE", [organizationId])
  return await sumBytes(sql, organizationId)
}

export async function sumBytes(sql: Sql, organizationId: string): Promise<bigint> {
  return await bigint.one(sql, "SELECT coalesce(sum(bytes), 0) FROM files WHERE organization_id = $1", [
    organizationId,
  ])
}

export function findFile(sql: Sql, organizationId: string, id: string, now: Date): Promise<File | null> {
  return File.find(sql, "organization_id = $1 AND id = $2 AND expires_at > $3", [organizationId, id, now])
}

export interface FileQuery {
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
  const files = await File.list(
    sql,
    `organization_id = $1 AND expires_at > $2 AND ($3::text IS NULL OR id ${beyond} $3)
       AND ($4::text IS NULL OR purpose = $4) ORDER BY id ${order} LIMIT $5`,
    [organizationId, now, after ?? null, purpose ?? null, limit + 1],
  )
  return toPage(files, limit, ({ id }) => id)
}

/** Its bytes go with the next sweep, unless something else names them. */
export async function deleteFile(sql: Sql, organizationId: string, id: string): Promise<boolean> {
  const rows = await sql.query("DELETE FROM files WHERE organization_id = $1 AND id = $2 RETURNING id", [
    organizationId,
    id,
  ])
  return rows.length > 0
}

/** With the organization: its bytes go with the next sweep. */
export async function deleteFilesOf(sql: Sql, organizationId: string): Promise<void> {
  await sql.query("DELETE FROM batches WHERE organization_id = $1", [organizationId])
  await sql.query("DELETE FROM files WHERE organization_id = $1", [organizationId])
}

const dayMs = 86_400_000
/** An ended batch is forgotten after this. */
const batchesKeptMs = 90 * dayMs

/** Removes what has expired and what deleted organizations had, then blobs of this storage that nothing names any more. */
export async function sweepFiles(database: Database, storage: FileStorage, now: Date): Promise<void> {
  const deleted = "SELECT id FROM organizations WHERE deleted_at IS NOT NULL"
  await database.query(`DELETE FROM batches WHERE finished_at < $1 OR organization_id IN (${deleted})`, [
    new Date(now.getTime() - batchesKeptMs),
  ])
  await database.query(`DELETE FROM files WHERE expires_at <= $1 OR organization_id IN (${deleted})`, [now])
  await removeOrphans(database, storage, now)
}

/** One at a time: an upload of the same bytes meanwhile waits until they are gone, and places them again. */
export async function removeOrphans(database: Database, storage: FileStorage, now: Date): Promise<void> {
  while (await removeOrphan(database, storage, now));
}

const Orphan = row({ organizationId: text, sha256: text })

/** False when there is none. */
async function removeOrphan(database: Database, storage: FileStorage, now: Date): Promise<boolean> {
  return await database.transaction(async (sql) => {
    const orphan = await Orphan.first(
      sql,
      `SELECT organization_id, sha256 FROM file_blobs b
       WHERE storage = $1 AND (kept_until IS NULL OR kept_until <= $2)
         AND NOT EXISTS (SELECT 1 FROM files f WHERE f.organization_id = b.organization_id
           AND f.storage = b.storage AND f.sha256 = b.sha256)
         AND NOT EXISTS (SELECT 1 FROM batches a WHERE a.organization_id = b.organization_id
           AND a.storage = b.storage AND a.input_sha256 = b.sha256)
         AND NOT EXISTS (SELECT 1 FROM batch_parts p WHERE p.organization_id = b.organization_id
           AND p.storage = b.storage AND p.result_sha256 = b.sha256)
       LIMIT 1 FOR UPDATE SKIP LOCKED`,
      [storage.id, now],
    )
    if (!orphan) return false
    const { organizationId, sha256 } = orphan
    await sql.query("DELETE FROM file_blobs WHERE organization_id = $1 AND storage = $2 AND sha256 = $3", [
      organizationId,
      storage.id,
      sha256,
    ])
    await storage.remove({ organizationId, sha256 })
    return true
  })
}
