/** Answers OpenAI's Files API over the rows of files and the storage of their bytes, and removes files that are no longer needed. */
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Busboy, type BusboyInstance } from "@fastify/busboy"
import { z } from "zod"
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Log } from "../../base/log.ts"
import type { Membership } from "../../contract/access.ts"
import { DocumentStream, type Handlers, type BodyStream } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type FileObject, type fileEndpoints, FileFields } from "../../contract/openai/files.ts"
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
import type { FileStorage, StagedBlob } from "../../store/files/storage.ts"
import type { Database } from "../../store/sql.ts"

export interface FileDeps {
  readonly database: Database
  readonly storage: FileStorage
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly fileBytesMax: number
  readonly organizationBytesMax: number
  readonly expiryMs: number
}

/** A gateway that is not updated yet may have the file. */
const unreachableRetryMs = 30_000
/** Each may leave as much behind as a file may have until it is refused. */
const uploadsAtOnceMax = 4

export function fileHandlers(deps: FileDeps): Handlers<typeof fileEndpoints> {
  const { database, storage, clock } = deps
  const uploads = new Map<string, number>()
  const now = (): Date => new Date(clock.nowMs())
  return {
    createFile: async ({ body, membership }) => {
      const organizationId = organizationOf(membership)
      const running = uploads.get(organizationId) ?? 0
      if (running >= uploadsAtOnceMax)
        throw new Fault("overloaded", `Cannot take the upload: ${uploadsAtOnceMax} others are running`, {
          retryAfterMs: 1_000,
        })
      uploads.set(organizationId, running + 1)
      try {
        return toFileObject(await storeUpload(deps, organizationId, body))
      } finally {
        const left = (uploads.get(organizationId) ?? 1) - 1
        if (left > 0) uploads.set(organizationId, left)
        else uploads.delete(organizationId)
      }
    },
    listFiles: async ({ query, membership }) => {
      const { items, nextCursor } = await pageFiles(database, organizationOf(membership), query, now())
      return listOf(items.map(toFileObject), nextCursor !== null)
    },
    getFile: async ({ params, membership }) =>
      toFileObject(
        await visibleFile(database, organizationOf(membership), { id: params.file_id, now: now() }),
      ),
    getFileContent: async (call) => {
      const { params, membership } = call
      const file = await visibleFile(database, organizationOf(membership), { id: params.file_id, now: now() })
      checkReachable(deps, file)
      call.header("content-length", String(file.bytes))
      call.header("content-disposition", `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`)
      return new DocumentStream(storage.read(file))
    },
    deleteFile: async ({ params, membership }) => {
      if (!(await deleteFile(database, organizationOf(membership), params.file_id))) throw noFile()
      // Where it fails, the next sweep does it.
      await removeOrphans(database, storage, new Date(deps.clock.nowMs())).catch((error: unknown) =>
        deps.log.warn({ err: error }, "the bytes of a deleted file could not be removed"),
      )
      return { id: params.file_id, object: "file", deleted: true }
    },
  }
}

/** Every endpoint for inference has a membership in an organization. */
export function organizationOf(membership: Membership | null): string {
  if (!membership) throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
  return membership.organizationId
}

export const listOf = <Item extends { readonly id: string }>(data: Item[], hasMore: boolean) => ({
  object: "list" as const,
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})

export interface ListPage {
  readonly limit: number
  readonly order: "asc" | "desc"
  readonly after?: string | undefined
}

/** Of a list that is held whole, oldest first. */
export function pageOf<Item extends { readonly id: string }>(
  items: readonly Item[],
  { limit, order, after }: ListPage,
) {
  const ordered = order === "asc" ? items : items.toReversed()
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  return listOf(ordered.slice(start, start + limit), start + limit < ordered.length)
}

export async function visibleFile(
  database: Database,
  organizationId: string,
  { id, now }: { id: string; now: Date },
): Promise<File> {
  const file = await findFile(database, organizationId, id, now)
  if (!file) throw noFile()
  return file
}

const noFile = (): Fault =>
  new Fault("not_found", "Cannot find the file: no such id is visible to this principal")

/** Throws Fault `not_ready` where its bytes lie elsewhere. */
export function checkReachable(
  { storage, log }: { readonly storage: Pick<FileStorage, "id">; readonly log: Pick<Log, "warn"> },
  file: Pick<File, "id" | "storage">,
): void {
  if (file.storage === storage.id) return
  log.warn(
    { file: file.id, storage: file.storage },
    "a file lies in the storage of another gateway: it moves to the shared one when that gateway starts with this version",
  )
  throw new Fault("not_ready", "Cannot read the file at the moment: try again later", {
    retryAfterMs: unreachableRetryMs,
  })
}

async function storeUpload(
  deps: FileDeps,
  organizationId: string,
  body: Parameters<typeof receiveUpload>[0],
): Promise<File> {
  const { fields, filename, blob } = await receiveUpload(
    body,
    deps.storage,
    await roomFor(deps, organizationId),
  )
  const seconds = fields["expires_after[seconds]"]
  const expiryMs = seconds === undefined ? deps.expiryMs : seconds * 1000
  return await placeFile(deps, { organizationId, filename, purpose: fields.purpose, expiryMs }, blob)
}

/** A file that the server makes. Throws Fault `body_over_limit` or `storage_full`. */
export async function storeBlob(
  deps: FileDeps,
  file: Omit<PlacedFile, "expiryMs">,
  pieces: AsyncIterable<Uint8Array>,
): Promise<File> {
  const bytesMax = await roomFor(deps, file.organizationId)
  const blob = await deps.storage.stage(bounded(pieces, bytesMax, () => tooLarge(bytesMax)))
  return await placeFile(deps, { ...file, expiryMs: deps.expiryMs }, blob)
}

async function roomFor(deps: FileDeps, organizationId: string): Promise<number> {
  const left = deps.organizationBytesMax - Number(await sumBytes(deps.database, organizationId))
  return Math.max(0, Math.min(deps.fileBytesMax, left))
}

interface PlacedFile extends Pick<File, "organizationId" | "filename" | "purpose"> {
  readonly expiryMs: number
}

/** Discards what was staged once it lies in its place. */
async function placeFile(
  { database, storage, clock, ids, organizationBytesMax }: FileDeps,
  { expiryMs, ...placed }: PlacedFile,
  blob: StagedBlob,
): Promise<File> {
  const { organizationId } = placed
  try {
    const createdAt = new Date(clock.nowMs())
    const expiresAt = new Date(createdAt.getTime() + expiryMs)
    const file = { id: ids.next("file"), ...placed, createdAt, expiresAt }
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

function toFileObject(file: File): FileObject {
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

  invalidate({ table }: Change): void {
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

interface Upload {
  readonly fields: FileFields
  readonly filename: string
  /** It must be discarded in the end. */
  readonly blob: StagedBlob
}

/** Of the form around the file. */
const formBytesMax = 64 * 1024
const fieldsMax = 16
const filenameCharactersMax = 255

interface FileFound {
  readonly filename: string
  readonly stream: Readable
  readonly staged: Promise<StagedBlob>
}

/** Throws Fault `invalid_request` or `body_over_limit`; then nothing is left of the file. */
export async function receiveUpload(
  body: BodyStream,
  storage: Pick<FileStorage, "stage">,
  bytesMax: number,
): Promise<Upload> {
  const over = (): Fault => tooLarge(bytesMax)
  if (body.contentLength !== null && body.contentLength > bytesMax + formBytesMax) throw over()
  const form = openForm(body.contentType)
  const values = new Map<string, string>()
  const found: { file: FileFound | null } = { file: null }
  // Further errors after the first say nothing new, and without a listener they would end the process.
  form.on("error", () => undefined)
  // The rest of a form is not read once it has more of anything than a form may have.
  const refuse = (): void => {
    form.destroy(
      new Fault("invalid_request", `Cannot read the form: it has more than ${fieldsMax} fields or one file`),
    )
  }
  form.on("partsLimit", refuse).on("fieldsLimit", refuse).on("filesLimit", refuse)
  form.on("field", (name, value) => void values.set(name, value))
  form.on("file", (name, stream, filename) => {
    // A form that breaks off fails its file, which may have no reader yet.
    stream.on("error", (error) => form.destroy(error))
    if (name !== "file" || found.file) return void stream.resume()
    const staged = storage.stage(bounded(stream, bytesMax, over))
    // The form is read no further when its file cannot be stored.
    staged.catch((error: Error) => form.destroy(error))
    found.file = { filename: nameOf(filename), stream, staged }
  })
  try {
    await pipeline(Readable.from(body.pieces), form)
  } catch (error) {
    // What stores it must not wait for more; why it failed tells more than that the form was left.
    found.file?.stream.destroy()
    const why: unknown = await discard(found.file)
    throw why instanceof Fault ? why : error instanceof Fault ? error : broken(error)
  }
  return await uploadOf(values, found.file)
}

const tooLarge = (bytesMax: number): Fault =>
  new Fault(
    "body_over_limit",
    `Cannot store the file: it is larger than ${bytesMax} bytes, which is what fits`,
  )

function openForm(contentType: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { fields: fieldsMax, files: 1, parts: fieldsMax + 2, fieldSize: 1024, headerPairs: 32 },
    })
  } catch (error) {
    throw broken(error)
  }
}

const broken = (cause: unknown): Fault =>
  new Fault("invalid_request", "Cannot read the form: it is not multipart/form-data, or it broke off", {
    cause,
  })

async function* bounded(
  pieces: AsyncIterable<Uint8Array>,
  bytesMax: number,
  over: () => Fault,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > bytesMax) throw over()
    yield piece
  }
}

/** What a file system or a terminal would take for more than a name is left out. */
const nameOf = (filename: string): string =>
  filename.replaceAll(/\p{Cc}/gu, "").slice(0, filenameCharactersMax) || "file"

/** Returns why it could not be stored; null where it could. */
async function discard(file: FileFound | null): Promise<unknown> {
  try {
    await (await file?.staged)?.discard()
    return null
  } catch (error) {
    return error
  }
}

async function uploadOf(values: ReadonlyMap<string, string>, file: FileFound | null): Promise<Upload> {
  const parsed = FileFields.safeParse(Object.fromEntries(values))
  if (!file || !parsed.success) {
    await discard(file)
    const param = parsed.success ? "file" : (parsed.error.issues[0]?.path.join(".") ?? "")
    const why = parsed.success ? "it has no file" : z.prettifyError(parsed.error)
    throw new Fault("invalid_request", `Cannot use the form: ${why}`, { param })
  }
  return { fields: parsed.data, filename: file.filename, blob: await file.staged }
}
