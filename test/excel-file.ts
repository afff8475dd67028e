/** Excel files for tests: written of the parts that are given, and read whole. */
import { createWriteStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { ZipFile } from "yazl"
import { ExcelSheet } from "../src/cli/excel-reader.ts"

const spreadsheet = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
const relationship = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

export type ExcelParts = Readonly<Record<string, string | Buffer>>

const related = (targets: Readonly<Record<string, string>>): string =>
  `<Relationships>${Object.entries(targets)
    .map(
      ([target, type], at) => `<Relationship Id="r${at}" Type="${relationship}/${type}" Target="${target}"/>`,
    )
    .join("")}</Relationships>`

export const sheetXml = (rows: string): string =>
  `<worksheet ${spreadsheet}><sheetData>${rows}</sheetData></worksheet>`

/** One sheet, called First, of these rows; the workbook also has shared strings and styles. */
export const excelParts = (rows: string, { strings = "", styles = "" } = {}): ExcelParts => ({
  "_rels/.rels": related({ "xl/workbook.xml": "officeDocument" }),
  "xl/workbook.xml": `<workbook ${spreadsheet} xmlns:r="${relationship}"><sheets><sheet name="First" sheetId="1" r:id="r0"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels": related({
    "worksheets/sheet1.xml": "worksheet",
    "/xl/sharedStrings.xml": "sharedStrings",
    "styles.xml": "styles",
  }),
  "xl/sharedStrings.xml": `<sst ${spreadsheet}>${strings}</sst>`,
  "xl/styles.xml": `<styleSheet ${spreadsheet}>${styles}</styleSheet>`,
  "xl/worksheets/sheet1.xml": sheetXml(rows),
})

export async function writeParts(
  path: string,
  parts: Iterable<readonly [string, string | Buffer]>,
): Promise<void> {
  const zip = new ZipFile()
  for (const [name, content] of parts) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  await pipeline(zip.outputStream, createWriteStream(path))
}

export interface WholeSheet {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly (string | null)[])[]
}

export async function readExcel(...given: Parameters<typeof ExcelSheet.open>): Promise<WholeSheet> {
  const sheet = await ExcelSheet.open(...given)
  try {
    const rows: (readonly (string | null)[])[] = []
    for await (const row of sheet.rows()) rows.push(row)
    return { columns: sheet.columns, types: sheet.types, rows }
  } finally {
    await sheet.close()
  }
}
