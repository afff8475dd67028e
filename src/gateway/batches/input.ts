/** Checks the input of a batch, and cuts it into parts of whole lines that gateways run one by one. */
import type { BatchError, BatchErrorCode } from "../../contract/openai/batches.ts"
import type { Batch, NewPart } from "../../store/batches/batches.ts"
import { BlobDamaged, type FileStorage } from "../../store/files/storage.ts"
import { readLines } from "./lines.ts"

/** Small enough that little is run again when a gateway dies. */
const partLinesMax = 32
const partBytesMax = 1024 * 1024
/** The largest body that decisions may have. */
const lineBytesMax = 8 * 1024 * 1024
const errorsMax = 100
const newline = 0x0a

interface CheckedInput {
  readonly parts: readonly NewPart[]
  readonly total: number
  readonly errors: readonly BatchError[]
}

interface InputParts {
  readonly storage: FileStorage
  readonly linesMax: number
}

export async function checkInput(
  { storage, linesMax }: InputParts,
  batch: Batch,
  signal: AbortSignal,
): Promise<CheckedInput> {
  const { organizationId, endpoint, inputSha256: sha256 } = batch
  const parts: NewPart[] = []
  const errors: BatchError[] = []
  /** The line of each name. */
  const names = new Map<string, number>()
  try {
    for await (const { bytes, ...part } of cutParts(storage.read({ organizationId, sha256: sha256 ?? "" }))) {
      const job = { endpoint, bytes, firstLine: part.firstLine, withBodies: false }
      const read = await readLines(organizationId, job, signal)
      errors.push(...read.errors)
      for (const { line, customId } of read.lines) {
        const first = names.get(customId)
        if (first === undefined) names.set(customId, line)
        else errors.push(duplicate(line, first))
      }
      if (names.size > linesMax)
        errors.push(inputError("too_many_lines", `It has more than ${linesMax} lines`))
      if (names.size > linesMax || errors.length >= errorsMax) break
      if (read.lines.length > 0) parts.push({ number: parts.length, ...part })
    }
  } catch (error) {
    if (error instanceof LineTooLong) errors.push(error.told)
    else if (error instanceof BlobDamaged) errors.push(inputError("file_damaged", error.message))
    else throw error
  }
  if (names.size === 0 && errors.length === 0) errors.push(inputError("empty_file", "It has no lines"))
  return { parts, total: names.size, errors: errors.slice(0, errorsMax) }
}

const inputError = (code: BatchErrorCode, message: string): BatchError => ({
  code,
  message,
  line: null,
  param: "input_file_id",
})

const duplicate = (line: number, first: number): BatchError => ({
  code: "duplicate_custom_id",
  message: `Line ${first} has the same one`,
  line,
  param: "custom_id",
})

class LineTooLong extends Error {
  readonly told: BatchError

  constructor(line: number) {
    super("A line is too long")
    this.told = {
      code: "line_too_long",
      message: `It has more than ${lineBytesMax} bytes`,
      line,
      param: null,
    }
  }
}

interface Cut {
  readonly bytes: Uint8Array
  readonly start: number
  readonly length: number
  readonly firstLine: number
}

/** Has no more in memory than a part and a line. */
async function* cutParts(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Cut> {
  let held: Uint8Array[] = []
  let [start, length, lineLength, firstLine, lines] = [0, 0, 0, 1, 0]
  const hold = (bytes: Uint8Array): void => {
    held.push(bytes)
    length += bytes.length
    lineLength += bytes.length
    if (lineLength > lineBytesMax) throw new LineTooLong(firstLine + lines)
  }
  const cut = (): Cut => {
    const made = { bytes: Buffer.concat(held, length), start, length, firstLine }
    ;[held, start, length, firstLine, lines] = [[], start + length, 0, firstLine + lines, 0]
    return made
  }
  for await (const piece of pieces) {
    let at = 0
    for (let end = piece.indexOf(newline); end >= 0; end = piece.indexOf(newline, at)) {
      hold(piece.subarray(at, end + 1))
      at = end + 1
      lineLength = 0
      lines++
      if (lines >= partLinesMax || length >= partBytesMax) yield cut()
    }
    hold(piece.subarray(at))
  }
  if (length > 0) yield cut()
}
