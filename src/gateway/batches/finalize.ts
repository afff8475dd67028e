/** Puts the results of a batch's parts together: a file of answers, and one of errors. */
import { keysOf } from "../../base/lists.ts"
import type { Ids } from "../../base/ids.ts"
import type { BatchError } from "../../contract/openai/batches.ts"
import { type Batch, type BatchPart, finishBatch, listParts } from "../../store/batches/batches.ts"
import { type File, insertFile, placeBlob } from "../../store/files/files.ts"
import { BlobDamaged, type FileStorage, type StagedBlob } from "../../store/files/storage.ts"
import { readLines } from "../../store/lines.ts"
import type { Database } from "../../store/sql.ts"
import type { BatchLine } from "./lines.ts"
import { unrunLine, readPartLines, resultMark } from "./run-line.ts"

interface FinalizeDeps {
  readonly database: Database
  readonly storage: FileStorage
  readonly ids: Ids
  readonly fileExpiryMs: number
}

/** False when another gateway has taken the batch over. */
export async function finalizeBatch(
  deps: FinalizeDeps,
  batch: Batch,
  { now, signal }: { now: Date; signal: AbortSignal },
): Promise<boolean> {
  const { database, storage } = deps
  const all = await listParts(database, batch.id)
  const found: Found = { completed: 0, unrun: 0, cut: 0, inputDamage: null }
  const output = await storage.stage(select(deps, batch, { all, signal, file: "output", found }))
  const errors = await storage
    .stage(select(deps, batch, { all, signal, file: "errors", found }))
    .catch(async (error: unknown) => {
      await output.discard()
      throw error
    })
  try {
    for (const blob of [output, errors])
      if (blob.bytes > 0) await placeBlob(database, storage, batch.organizationId, blob, now)
    return await database.transaction(async (sql) => {
      const keep = async (blob: StagedBlob, name: string): Promise<File | null> => {
        if (blob.bytes === 0) return null
        const file = {
          id: deps.ids.next("file"),
          organizationId: batch.organizationId,
          filename: `${batch.id}_${name}.jsonl`,
          purpose: "batch_output" as const,
          createdAt: now,
          expiresAt: new Date(now.getTime() + deps.fileExpiryMs),
        }
        return await insertFile(sql, storage, file, blob)
      }
      const whyFailed = found.inputDamage ? damagedInput(found.inputDamage) : cutOutput(found, storage)
      const outputFile = await keep(output, "output")
      const errorFile = await keep(errors, "error")
      const isOurs = await finishBatch(sql, batch, {
        ending: whyFailed !== null && batch.ending === "completed" ? "failed" : batch.ending,
        errors: whyFailed,
        outputFileId: outputFile?.id ?? null,
        errorFileId: errorFile?.id ?? null,
        completed: found.completed,
        unrun: found.unrun,
        now,
      })
      if (!isOurs) throw new LostBatch()
      return true
    })
  } catch (error) {
    if (error instanceof LostBatch) return false
    throw error
  } finally {
    await output.discard()
    await errors.discard()
  }
}

/** Rolls back the files. */
class LostBatch extends Error {}

type Kind = keyof typeof resultMark
const kinds = keysOf(resultMark)

interface Found {
  /** Lines whose answers are in the output file. */
  completed: number
  unrun: number
  /** Those after them, whose answers do not fit it any more. */
  cut: number
  /** Set where lines that were not run cannot even be named. */
  inputDamage: BlobDamaged | null
}

/** The `errors` of a batch whose answers are more than the storage takes as one file; null where they fit. */
function cutOutput({ cut }: Found, { blobBytesMax }: FileStorage): string | null {
  if (cut === 0) return null
  const message = `The answers of ${cut} lines do not fit a file of ${blobBytesMax} bytes; the error file names them.`
  return JSON.stringify([{ ...tooLarge, message, line: null, param: null } satisfies BatchError])
}

/** The `errors` of a batch whose input cannot be read any more. */
export function damagedInput({ message }: BlobDamaged): string {
  return JSON.stringify([
    { code: "file_damaged", message, line: null, param: "input_file_id" } satisfies BatchError,
  ])
}

async function* select(
  deps: FinalizeDeps,
  batch: Batch,
  {
    all,
    signal,
    file,
    found,
  }: { all: readonly BatchPart[]; signal: AbortSignal; file: "output" | "errors"; found: Found },
): AsyncGenerator<Buffer> {
  const isOutput = file === "output"
  let bytes = 0
  let answers = 0
  for (const part of all) {
    signal.throwIfAborted()
    const startedMs = (part.startedAt ?? batch.createdAt).getTime()
    const { lines, why } = await resultsOf(deps, batch, { part, signal }).catch((error: unknown) => {
      if (!(error instanceof BlobDamaged)) throw error
      found.inputDamage = error
      return { lines: [], why: notRun }
    })
    for (const { kind, text } of lines) {
      if (kind !== "output") {
        if (isOutput) continue
        if (kind === "unrun") found.unrun++
        // Written by encodeResults.
        const line = kind === "unrun" ? (JSON.parse(text) as BatchLine) : null
        yield Buffer.from(`${line ? unrunLine({ batchId: batch.id, line, startedMs }, why) : text}\n`)
      } else if (isOutput) {
        const answer = Buffer.from(`${text}\n`)
        bytes += answer.length
        if (bytes > deps.storage.blobBytesMax) found.cut++
        else {
          found.completed++
          yield answer
        }
      } else if (++answers > found.completed)
        yield Buffer.from(`${JSON.stringify({ ...namesOf(text), response: null, error: tooLarge })}\n`)
    }
  }
}

/** Of a line that `resultLine` wrote. */
function namesOf(text: string): { readonly id: string; readonly custom_id: string } {
  const { id, custom_id } = JSON.parse(text) as { id: string; custom_id: string }
  return { id, custom_id }
}

type Reason = Pick<BatchError, "code" | "message">

const tooLarge: Reason = {
  code: "output_too_large",
  message: "The request was answered and charged; its answer does not fit the output file any more.",
}

interface PartResults {
  readonly lines: readonly { readonly kind: Kind; readonly text: string }[]
  /** Of those that were not run. */
  readonly why: Reason
}

/**
 * All at once: that they are damaged shows at their end. Those of a damaged part are lost, and its lines count as not run.
 * Throws BlobDamaged when the input is damaged too.
 */
async function resultsOf(
  deps: FinalizeDeps,
  batch: Batch,
  { part, signal }: { part: BatchPart; signal: AbortSignal },
): Promise<PartResults> {
  const unrun = async (why: Reason): Promise<PartResults> => ({
    lines: (await readPartLines(deps, batch, { part, signal })).map(({ line, customId }) => ({
      kind: "unrun",
      text: JSON.stringify({ line, customId, body: "" }),
    })),
    why,
  })
  if (part.resultSha256 === null) return await unrun(reasonOf(batch))
  const name = { organizationId: batch.organizationId, sha256: part.resultSha256 }
  const lines: PartResults["lines"][number][] = []
  try {
    for await (const line of readLines(deps.storage.read(name)))
      lines.push({
        kind: kinds.find((kind) => line.startsWith(resultMark[kind])) ?? "error",
        text: line.slice(1),
      })
    return { lines, why: reasonOf(batch) }
  } catch (error) {
    if (!(error instanceof BlobDamaged)) throw error
    return await unrun(lost)
  }
}

const notRun: Reason = { code: "internal", message: "The request was not run." }
const lost: Reason = { code: "file_damaged", message: "The result was damaged in the storage." }

/** Why the lines that were not run were not. */
function reasonOf({ ending, errors }: Batch): Reason {
  switch (ending) {
    case "cancelled":
      return { code: "batch_cancelled", message: "The batch was cancelled before this request was run." }
    case "expired":
      return { code: "batch_expired", message: "The completion window ended before this request was run." }
    case "completed":
    case "failed": {
      const [first] = errors ?? []
      const { code, message } = first ?? notRun
      return { code, message }
    }
  }
}
