/** The zip archive of an Excel file: what it may hold at most, what is refused, and its parts as streams of text. */
import { open } from "node:fs/promises"
import { crc32 } from "node:zlib"
import { type Entry, type ZipFile, openPromise } from "yauzl"
import { LIMITS } from "../contract/decisions.ts"
import { UsageError } from "./command.ts"

const mebibyte = 1024 * 1024

/** Each is checked before what it bounds is worked on. Bytes of parts are those of the expanded XML. */
export const excelLimits = {
  fileBytesMax: 1024 * mebibyte,
  partsMax: 10_000,
  sheetBytesMax: 4096 * mebibyte - 1,
  /** Shared strings are kept in memory while the sheet is read. */
  sharedStringsBytesMax: 256 * mebibyte,
  /** Of any other part that is read: the workbook, its relationships, its styles. */
  partBytesMax: 16 * mebibyte,
  columnsMax: 2048,
  /** Rows times columns. */
  cellsMax: 20_000_000,
  /** A row may be as long as a line of CSV. */
  rowLengthMax: LIMITS.bodyBytesMax,
  /** A few shared strings can fill a large sheet. */
  textLengthMax: 1024 * mebibyte,
}
export type ExcelLimits = typeof excelLimits

export const unreadable = (why: string): UsageError => new UsageError(`cannot read the Excel file: ${why}`)

const damaged = "it is cut short or damaged"
const zipSignature = "504b0304"
const compoundSignature = "d0cf11e0a1b11ae1"

export class ExcelArchive {
  readonly #zip: ZipFile
  /** By their names in lower case: those of an Office file do not differ in case alone. */
  readonly #parts: ReadonlyMap<string, Entry>

  private constructor(zip: ZipFile, parts: ReadonlyMap<string, Entry>) {
    this.#zip = zip
    this.#parts = parts
  }

  static async open(path: string, limits: ExcelLimits): Promise<ExcelArchive> {
    await refuseOthers(path, limits)
    const zip = await openPromise(path, { autoClose: false }).catch(() => {
      throw unreadable(damaged)
    })
    try {
      return new ExcelArchive(zip, await listParts(zip, limits))
    } catch (error) {
      zip.close()
      throw error instanceof UsageError ? error : unreadable(damaged)
    }
  }

  /** The text of a part, piece by piece. That its size is what the archive says is checked while it is expanded. */
  async *read(name: string, bytesMax: number): AsyncGenerator<string> {
    const entry = this.#parts.get(name.toLowerCase())
    if (!entry) throw unreadable(`it has no ${name}`)
    if (entry.uncompressedSize > bytesMax)
      throw unreadable(`${name} expands to ${entry.uncompressedSize} bytes; at most ${bytesMax}`)
    const decoder = new TextDecoder("utf-8", { fatal: true })
    let sum = 0
    try {
      // Node's type of a stream does not say what it yields; without an encoding that is bytes.
      for await (const bytes of (await this.#zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
        sum = crc32(bytes, sum)
        yield decoder.decode(bytes, { stream: true })
      }
      yield decoder.decode()
    } catch {
      throw unreadable(damaged)
    }
    if (sum !== entry.crc32) throw unreadable(damaged)
  }

  close(): void {
    this.#zip.close()
  }
}

async function listParts(zip: ZipFile, { partsMax }: ExcelLimits): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > partsMax)
    throw unreadable(`its archive has ${zip.entryCount} parts; at most ${partsMax}`)
  const parts = new Map<string, Entry>()
  for await (const entry of zip.eachEntry()) {
    const name = entry.fileName.toLowerCase()
    if (entry.isEncrypted()) throw unreadable("it is encrypted: save it without a password")
    if (parts.has(name)) throw unreadable(`its archive has two parts called ${entry.fileName}`)
    parts.set(name, entry)
  }
  return parts
}

/** By size and signature, before anything is expanded. */
async function refuseOthers(path: string, { fileBytesMax }: ExcelLimits): Promise<void> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    if (size > fileBytesMax) throw unreadable(`it has ${size} bytes; at most ${fileBytesMax}`)
    const head = await readAt(0, 512)
    const signature = head.toString("hex", 0, 8)
    if (signature === compoundSignature)
      throw unreadable(
        (await isEncrypted(head))
          ? "it is encrypted: save it without a password"
          : "it is an old Excel file (.xls): save it as .xlsx",
      )
    if (!signature.startsWith(zipSignature)) throw unreadable("it is no .xlsx file, as it is no zip archive")
  } finally {
    await file.close()
  }

  async function readAt(position: number, length: number): Promise<Buffer> {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
    return buffer.subarray(0, bytesRead)
  }

  /** An encrypted workbook lies in a compound file, as .xls does; the directory of that names it (MS-CFB 2.2 and 2.6). */
  async function isEncrypted(head: Buffer): Promise<boolean> {
    if (head.length < 512) return false
    const sectorBytes = head.readUInt16LE(30) === 12 ? 4096 : 512
    const directory = await readAt((head.readUInt32LE(48) + 1) * sectorBytes, 4096)
    return directory.includes(Buffer.from("EncryptedPackage", "utf16le"))
  }
}
