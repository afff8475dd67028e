/** What a gateway kept in a folder of its own, once gateways share a storage. */
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { openTestDatabase } from "../../../test/database.ts"
import { givenOrganization, nextId } from "../../../test/store/conformance-fixtures.ts"
import { findFile, insertFile, moveBlobs, placeBlob } from "./files.ts"
import { column } from "../rows.ts"
import type { Database } from "../sql.ts"
import { openDatabaseStorage } from "./database-storage.ts"
import { type FileStorage, openDirectoryStorage } from "./storage.ts"

let database: Database
let folder: string
let from: FileStorage
let to: FileStorage
const now = new Date()
const later = new Date(now.getTime() + 3_600_000)

beforeAll(async () => {
  database = await openTestDatabase()
  folder = await mkdtemp(join(tmpdir(), "umpire-move-"))
  from = await openDirectoryStorage(folder, Date.now())
  to = await openDatabaseStorage(database, now)
})
afterAll(async () => {
  await database.close()
  await rm(folder, { recursive: true })
})

// oxlint-disable-next-line require-await -- what stores it takes a stream
async function* once(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}

async function given(organizationId: string, content: string): Promise<string> {
  const blob = await from.stage(once(content))
  await placeBlob(database, from, organizationId, blob, now)
  const id = nextId("file")
  const file = {
    id,
    organizationId,
    filename: "a",
    purpose: "batch" as const,
    createdAt: now,
    expiresAt: later,
  }
  await database.transaction(async (sql) => await insertFile(sql, from, file, blob))
  await blob.discard()
  return id
}

test("files and what batches name move with their bytes; a damaged one stays, and its file says where", async () => {
  const { id: organizationId } = await givenOrganization(database)
  const whole = await given(organizationId, "whole")
  const same = await given(organizationId, "whole")
  const broken = await given(organizationId, "broken")
  const damaged = await findFile(database, organizationId, broken, now)
  await from.remove({ organizationId, sha256: damaged?.sha256 ?? "" }, database)
  await database.query(
    `INSERT INTO batches (id, organization_id, principal, endpoint, input_file_id, storage, input_sha256, completion_window, status, created_at, expires_at)
     SELECT 'batch_open', organization_id, '{}', '/v1/decisions', id, storage, sha256, '24h', 'in_progress', created_at, expires_at FROM files WHERE id = $1`,
    [whole],
  )
  await database.query(
    `INSERT INTO batch_parts (batch_id, number, organization_id, storage, first_line, start, length, state)
     SELECT id, 0, organization_id, storage, 1, 0, 5, 'waiting' FROM batches`,
  )
  expect(await moveBlobs(database, { from, to, now })).toBe(1)
  expect(await moveBlobs(database, { from, to, now })).toBe(0)
  for (const id of [whole, same]) {
    const file = await findFile(database, organizationId, id, now)
    expect(file?.storage).toBe(to.id)
    const read: Uint8Array[] = []
    for await (const piece of to.read({ organizationId, sha256: file?.sha256 ?? "" })) read.push(piece)
    expect(Buffer.concat(read).toString()).toBe("whole")
  }
  expect((await findFile(database, organizationId, broken, now))?.storage).toBe(from.id)
  expect(
    await column.text.all(database)`SELECT storage FROM batches UNION ALL SELECT storage FROM batch_parts`,
  ).toEqual([to.id, to.id])
  const left = (await readdir(folder, { recursive: true })).filter((path) => /[0-9a-f]{64}$/.test(path))
  expect(left).toEqual([])
})
