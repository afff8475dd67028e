/** The text of a file, or where and why it is none. */

import { decodeTable } from "../../../src/base/table-text.ts"
import { t } from "../i18n/translate.ts"

/** Its sentence is for the user who chose the file. */
export class UnreadableFile extends Error {
  override readonly name = "UnreadableFile"
}

const newline = 0x0a
/** How files begin that people take for tables. */
const archive = [0x50, 0x4b, 0x03, 0x04]
const littleEndian = [0xff, 0xfe]
const bigEndian = [0xfe, 0xff]

const beginsWith = (bytes: Uint8Array, head: readonly number[]): boolean =>
  head.every((byte, at) => bytes[at] === byte)

/** Without a byte order mark. Throws UnreadableFile, with line and character, for what is neither UTF-8 nor Latin-1. */
export function fileText(bytes: Uint8Array): string {
  if (beginsWith(bytes, archive))
    throw new UnreadableFile(
      t(
        "This is an archive, such as an Excel workbook. Save the sheet as CSV: in Excel, File, Save As, “CSV UTF-8”.",
      ),
    )
  if (beginsWith(bytes, littleEndian) || beginsWith(bytes, bigEndian))
    throw new UnreadableFile(t("Line 1, character 1: the file is UTF-16. Save it as UTF-8."))
  const zero = bytes.indexOf(0)
  if (zero >= 0)
    throw new UnreadableFile(
      t(
        "Line {line}, character {character}: the byte 0. This is not text but a binary file.",
        placeOf(bytes, zero),
      ),
    )
  const text = decodeTable(bytes)
  if (text === null)
    throw new UnreadableFile(
      t(
        "Line {line}, character {character}: this is not UTF-8. Save the file as UTF-8.",
        firstInvalid(bytes),
      ),
    )
  return text
}

function placeOf(bytes: Uint8Array, at: number): FilePlace {
  const start = bytes.lastIndexOf(newline, at) + 1
  let line = 1
  for (let end = bytes.indexOf(newline); end >= 0 && end < at; end = bytes.indexOf(newline, end + 1)) line++
  return place(line, Array.from(new TextDecoder().decode(bytes.subarray(start, at))).length + 1)
}

interface FilePlace {
  readonly line: number
  readonly character: number
}

const place = (line: number, character: number): FilePlace => ({ line, character })

/** No character of several bytes has a line break in it, so that lines are read one by one. */
function firstInvalid(bytes: Uint8Array): FilePlace {
  const strict = new TextDecoder("utf-8", { fatal: true })
  for (let line = 1, start = 0; start < bytes.length; line++) {
    const found = bytes.indexOf(newline, start)
    const end = found < 0 ? bytes.length : found
    const piece = bytes.subarray(start, end)
    try {
      strict.decode(piece)
    } catch {
      return place(line, Array.from(new TextDecoder().decode(piece)).indexOf("\uFFFD") + 1)
    }
    start = end + 1
  }
  return place(1, 1)
}
