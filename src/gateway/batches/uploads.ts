/** Reads a form with one file while it comes: the file goes to the storage piece by piece. */
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Busboy, type BusboyInstance } from "@fastify/busboy"
import { z } from "zod"
import type { BodyStream } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { FileFields } from "../../contract/openai/files.ts"
import type { FileStorage, StagedBlob } from "../../store/files/storage.ts"

export interface Upload {
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
  const tooLarge = (): Fault =>
    new Fault(
      "body_over_limit",
      `Cannot store the file: it is larger than ${bytesMax} bytes, which is what fits`,
    )
  if (body.contentLength !== null && body.contentLength > bytesMax + formBytesMax) throw tooLarge()
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
    // A form that breaks off fails its file, when nobody may be reading it yet.
    stream.on("error", (error) => form.destroy(error))
    if (name !== "file" || found.file) return void stream.resume()
    const staged = storage.stage(bounded(stream, bytesMax, tooLarge))
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
  pieces: AsyncIterable<Buffer>,
  bytesMax: number,
  tooLarge: () => Fault,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > bytesMax) throw tooLarge()
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
