/** Looks through a table file before DuckDB reads it: a record that is too long is lost there, and one nested too deep ends the process. */
import { createReadStream } from "node:fs"
import { LIMITS } from "../contract/decisions.ts"
import { UsageError } from "./command.ts"

/** A record may be as long as a request. */
export const recordBytesMax = LIMITS.bodyBytesMax
/** Deeper than any table is, and far from what the parser's stack holds. */
const depthMax = 512
const mebibyte = 1024 * 1024

const [newline, quote, backslash] = [0x0a, 0x22, 0x5c]
const [opensList, closesList, opensObject, closesObject] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Follows the bytes of one record after the other. */
class Records {
  readonly #isJson: boolean
  #row = 1
  #bytes = 0
  #depth = 0
  #isQuoted = false
  #isEscaped = false

  constructor(isJson: boolean) {
    this.#isJson = isJson
  }

  read(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (byte === newline && (this.#isJson || !this.#isQuoted)) this.#end()
      else this.#take(byte)
    }
  }

  #end(): void {
    this.#row++
    this.#bytes = this.#depth = 0
    this.#isQuoted = this.#isEscaped = false
  }

  #take(byte: number): void {
    if (++this.#bytes > recordBytesMax)
      throw new UsageError(
        `cannot read record ${this.#row}: it is longer than ${recordBytesMax / mebibyte} MiB` +
          (this.#isQuoted ? "; is a quotation mark missing?" : ""),
      )
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === quote) this.#isQuoted = !this.#isQuoted
    else if (this.#isJson && this.#isQuoted) this.#isEscaped = byte === backslash
    else if (this.#isJson) this.#nest(byte)
  }

  #nest(byte: number): void {
    if (byte === opensList || byte === opensObject) this.#depth++
    else if (byte === closesList || byte === closesObject) this.#depth--
    if (this.#depth > depthMax)
      throw new UsageError(`cannot read record ${this.#row}: it is nested deeper than ${depthMax} levels`)
  }
}

/** Throws a UsageError that names the record. In CSV, a quoted field may hold line breaks. */
export async function checkRecords(path: string, format: "csv" | "tsv" | "jsonl"): Promise<void> {
  const records = new Records(format === "jsonl")
  // Without an encoding, a file gives buffers.
  for await (const chunk of createReadStream(path, { highWaterMark: mebibyte })) records.read(chunk)
}
