/** Answers OpenAI's Files API over the rows of files and the storage of their bytes, and removes files that are no longer needed. */
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Standing } from "../../contract/access.ts"
import { DocumentStream, type Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { FileObject, fileEndpoints } from "../../contract/openai/files.ts"
import type { Change } from "../../store/changes.ts"
import {
  type File,
  deleteFile,
  findFile,
  insertFile,
  lockUsedBytes,
  pageFiles,
  placeBlob,
  removeOrphans,
  sumBytes,
  sweepFiles,
} from "../../store/files/files.ts"
import type { FileStorage } from "../../store/files/storage.ts"
import type { Database } from "../../store/sql.ts"
import { receiveUpload } from "./uploads.ts"

export interface FileParts {
  readonly database: Database
  readonly storage: FileStorage
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly fileBytesMax: number
  readonly organizationBytesMax: number
  readonly expiryMs: number
}

/** Each may leave as much behind as a file may have until it is refused. */
const uploadsAtOnceMax = 4

export function fileHandlers(parts: FileParts): Handlers<typeof fileEndpoints> {
  const { database, storage, clock } = parts
  const uploads = new Map<string, number>()
  const now = (): Date => new Date(clock.nowMs())
  return {
    createFile: async ({ body, standing }) => {
      const organizationId = organizationOf(standing)
      const running = uploads.get(organizationId) ?? 0
      if (running >= uploadsAtOnceMax)
        throw new Fault("overloaded", `Cannot take the upload: ${uploadsAtOnceMax} others are running`, {
          retryAfterMs: 1_000,
        })
      uploads.set(organizationId, running + 1)
      try {
        return toFileObject(await storeUpload(parts, organizationId, body))
      } finally {
        const left = (uploads.get(organizationId) ?? 1) - 1
        if (left > 0) uploads.set(organizationId, left)
        else uploads.delete(organizationId)
      }
    },
    listFiles: async ({ query, standing }) => {
      const { items, nextCursor } = await pageFiles(database, organizationOf(standing), query, now())
      return listOf(items.map(toFileObject), nextCursor !== null)
    },
    getFile: async ({ params, standing }) =>
      toFileObject(await visibleFile(database, organizationOf(standing), params.file_id, now())),
    getFileContent: async (call) => {
      const { params, standing } = call
      const file = await visibleFile(database, organizationOf(standing), params.file_id, now())
      if (file.storage !== storage.id)
        throw new Fault(
          "not_ready",
          "Cannot read the file here: it lies in the storage of another gateway; set files.directory or files.s3_bucket to a shared one",
        )
      call.header("content-length", String(file.bytes))
      call.header("content-disposition", `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`)
      return new DocumentStream(storage.read(file))
    },
    deleteFile: async ({ params, standing }) => {
      if (!(await deleteFile(database, organizationOf(standing), params.file_id))) throw noFile()
      // Where it fails, the next sweep does it.
      await removeOrphans(database, storage, new Date(parts.clock.nowMs())).catch((error: unknown) =>
        parts.log.warn({ err: error }, "the bytes of a deleted file could not be removed"),
      )
      return { id: params.file_id, object: "file", deleted: true }
    },
  }
}

/** Every endpoint for inference has a standing in an organization. */
export function organizationOf(standing: Standing | null): string {
  if (!standing) throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
  return standing.organizationId
}

export const listOf = <Item extends { readonly id: string }>(data: Item[], hasMore: boolean) => ({
  object: "list" as const,
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})

export async function visibleFile(
  database: Database,
  organizationId: string,
  id: string,
  now: Date,
): Promise<File> {
  const file = await findFile(database, organizationId, id, now)
  if (!file) throw noFile()
  return file
}

const noFile = (): Fault =>
  new Fault("not_found", "Cannot find the file: no such id is visible to this principal")

async function storeUpload(
  parts: FileParts,
  organizationId: string,
  body: Parameters<typeof receiveUpload>[0],
): Promise<File> {
  const { database, storage, clock, ids, fileBytesMax, organizationBytesMax } = parts
  const left = organizationBytesMax - Number(await sumBytes(database, organizationId))
  const bytesMax = Math.max(0, Math.min(fileBytesMax, left))
  const { fields, filename, blob } = await receiveUpload(body, storage, bytesMax)
  try {
    const createdAt = new Date(clock.nowMs())
    const seconds = fields["expires_after[seconds]"]
    const expiresAt = new Date(
      createdAt.getTime() + (seconds === undefined ? parts.expiryMs : seconds * 1000),
    )
    const { purpose } = fields
    const file = { id: ids.next("file"), organizationId, filename, purpose, createdAt, expiresAt }
    await placeBlob(database, storage, organizationId, blob, createdAt)
    return await database.transaction(async (sql) => {
      const used = Number(await lockUsedBytes(sql, organizationId))
      if (used + blob.bytes > organizationBytesMax)
        throw new Fault(
          "body_over_limit",
          `Cannot store the file: the files of the organization would take more than ${organizationBytesMax} bytes`,
        )
      return await insertFile(sql, storage, file, blob)
    })
  } finally {
    await blob.discard()
  }
}

export function toFileObject(file: File): FileObject {
  return {
    id: file.id,
    object: "file",
    bytes: Number(file.bytes),
    created_at: toSeconds(file.createdAt),
    expires_at: toSeconds(file.expiresAt),
    filename: file.filename,
    purpose: file.purpose,
    status: "processed",
    status_details: null,
    sha256: file.sha256,
  }
}

export const toSeconds = (at: Date): number => Math.floor(at.getTime() / 1000)

interface SweeperDeps {
  readonly database: Database
  readonly storage: FileStorage
  readonly clock: Clock
  readonly log: Log
}

const everyMs = 60_000

export class FileSweeper {
  readonly #deps: SweeperDeps
  #sweeping: Promise<void> = Promise.resolve()

  constructor(deps: SweeperDeps) {
    this.#deps = deps
  }

  /** To be done by one of the gateways that see the storage. */
  get task() {
    return { name: `files.sweep.${this.#deps.storage.id}`, everyMs, run: () => this.#sweep() }
  }

  forget({ table }: Change): void {
    if (table === "organizations") void this.#sweep()
  }

  async close(): Promise<void> {
    await this.#sweeping
  }

  #sweep(): Promise<void> {
    const { database, storage, clock, log } = this.#deps
    const sweep = async (): Promise<void> =>
      await sweepFiles(database, storage, new Date(clock.nowMs())).catch((error: unknown) =>
        log.warn({ err: error }, "files that are no longer needed could not be removed"),
      )
    this.#sweeping = this.#sweeping.then(sweep)
    return this.#sweeping
  }
}
