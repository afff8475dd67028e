/** Writes rows as an Excel file (.xlsx, ECMA-376) with one sheet, as they come: only a few of them are in memory. */
import { createWriteStream } from "node:fs"
import { PassThrough, Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { ZipFile } from "yazl"
import { UsageError } from "./command.ts"
import { type CellType, cellLengthMax, columnLetters, escapeText, serialOf } from "./excel-cells.ts"

interface ExcelColumn {
  readonly name: string
  readonly type: CellType
}

/** Rows come in pages; a value is its text, null where there is none. */
export type ExcelPages = AsyncIterable<readonly (readonly (string | null)[])[]>

/** What an archive without extensions holds of one part. */
const sheetBytesMax = 0xffff_ffff
const pieceLength = 64 * 1024

export async function writeExcel(
  path: string,
  columns: readonly ExcelColumn[],
  pages: ExcelPages,
): Promise<void> {
  const zip = new ZipFile()
  for (const [name, xml] of Object.entries(parts)) zip.addBuffer(Buffer.from(declaration + xml), name)
  const sheet = Readable.from(sheetXml(columns, pages), { objectMode: false })
  zip.addReadStream(sheet, "xl/worksheets/sheet1.xml")
  zip.end()
  const output = new PassThrough()
  zip.outputStream.pipe(output)
  // The archive does not hear of it.
  sheet.on("error", (error) => output.destroy(error))
  try {
    await pipeline(output, createWriteStream(path))
  } finally {
    sheet.destroy()
  }
}

async function* sheetXml(columns: readonly ExcelColumn[], pages: ExcelPages): AsyncGenerator<Buffer> {
  let piece = `${declaration}<worksheet xmlns="${spreadsheet}"><sheetData>`
  let row = 1
  let bytes = 0
  const flush = (): Buffer => {
    const whole = Buffer.from(piece)
    piece = ""
    bytes += whole.length
    if (bytes > sheetBytesMax)
      throw new UsageError("the table is too large for an Excel file: name another format by --to")
    return whole
  }
  piece += rowXml(
    row++,
    columns.map(({ name }) => ({ type: "VARCHAR", text: name })),
  )
  for await (const page of pages)
    for (const values of page) {
      piece += rowXml(
        row++,
        columns.map(({ type }, at) => ({ type, text: values[at] ?? null })),
      )
      if (piece.length >= pieceLength) yield flush()
    }
  piece += "</sheetData></worksheet>"
  yield flush()
}

interface Value {
  readonly type: CellType
  readonly text: string | null
}

const rowXml = (row: number, values: readonly Value[]): string =>
  `<row r="${row}">${values.map((value, column) => cellXml(`${columnLetters(column)}${row}`, value)).join("")}</row>`

function cellXml(address: string, { type, text }: Value): string {
  if (text === null || text === "") return ""
  if (type === "BOOLEAN") return `<c r="${address}" t="b"><v>${text === "true" ? 1 : 0}</v></c>`
  const serial = serialOf({ type, text })
  if (serial !== null) return `<c r="${address}"${styles[type] ?? ""}><v>${serial}</v></c>`
  if (text.length > cellLengthMax)
    throw new UsageError(
      `${address} would have ${text.length} characters; a cell of Excel has at most ${cellLengthMax}`,
    )
  return `<c r="${address}" t="inlineStr"><is><t xml:space="preserve">${escapeText(text)}</t></is></c>`
}

/** The cell styles of xl/styles.xml. */
const styles: Partial<Record<CellType, string>> = { DATE: ' s="1"', TIMESTAMP: ' s="2"', TIME: ' s="3"' }

const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const spreadsheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
const packages = "http://schemas.openxmlformats.org/package/2006"
const document = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
const content = "application/vnd.openxmlformats-officedocument.spreadsheetml"

const parts: Readonly<Record<string, string>> = {
  "[Content_Types].xml":
    `<Types xmlns="${packages}/content-types">` +
    `<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
    `<Default Extension="xml" ContentType="application/xml"/>` +
    `<Override PartName="/xl/workbook.xml" ContentType="${content}.sheet.main+xml"/>` +
    `<Override PartName="/xl/worksheets/sheet1.xml" ContentType="${content}.worksheet+xml"/>` +
    `<Override PartName="/xl/styles.xml" ContentType="${content}.styles+xml"/></Types>`,
  "_rels/.rels":
    `<Relationships xmlns="${packages}/relationships">` +
    `<Relationship Id="rId1" Type="${document}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  "xl/workbook.xml":
    `<workbook xmlns="${spreadsheet}" xmlns:r="${document}">` +
    `<sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels":
    `<Relationships xmlns="${packages}/relationships">` +
    `<Relationship Id="rId1" Type="${document}/worksheet" Target="worksheets/sheet1.xml"/>` +
    `<Relationship Id="rId2" Type="${document}/styles" Target="styles.xml"/></Relationships>`,
  "xl/styles.xml":
    `<styleSheet xmlns="${spreadsheet}">` +
    `<numFmts count="3"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>` +
    `<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/><numFmt numFmtId="166" formatCode="hh:mm:ss"/></numFmts>` +
    `<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>` +
    `<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
    `<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
    `<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>` +
    `<cellXfs count="4">${[0, 164, 165, 166].map((id) => `<xf numFmtId="${id}" fontId="0" fillId="0" borderId="0" xfId="0"${id === 0 ? "" : ' applyNumberFormat="1"'}/>`).join("")}</cellXfs>` +
    `<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`,
}
