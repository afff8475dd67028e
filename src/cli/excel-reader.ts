/** Reads a sheet of an Excel file (.xlsx, ECMA-376) row by row: the first row names the columns, blank rows are left out. */
import { posix } from "node:path"
import { UsageError } from "./command.ts"
import { ExcelArchive, type ExcelLimits, excelLimits, unreadable } from "./excel-archive.ts"
import {
  type Cell,
  type CellType,
  type DateParts,
  builtInParts,
  columnLetters,
  commonType,
  dateCell,
  isoCell,
  partsOfFormat,
  sheetColumnsMax,
  unescapeText,
} from "./excel-cells.ts"
import { XmlParser, readXml } from "./excel-xml.ts"

interface ExcelOptions {
  /** The name of the sheet; by default the first that is not hidden. */
  readonly sheet?: string | undefined
  readonly limits?: ExcelLimits
}

export class ExcelSheet {
  readonly columns: readonly string[]
  readonly #archive: ExcelArchive
  readonly #batches: AsyncGenerator<readonly SheetRow[]>
  /** Read with the first row. */
  readonly #pending: readonly SheetRow[]
  readonly #table: SheetTable

  private constructor(
    archive: ExcelArchive,
    batches: AsyncGenerator<readonly SheetRow[]>,
    [head, ...pending]: readonly SheetRow[],
    limits: ExcelLimits,
  ) {
    if (!head) throw unreadable("the sheet is empty: its first row names the columns")
    this.#archive = archive
    this.#batches = batches
    this.#pending = pending
    this.#table = new SheetTable(head, limits)
    this.columns = this.#table.columns
  }

  static async open(path: string, { sheet, limits = excelLimits }: ExcelOptions = {}): Promise<ExcelSheet> {
    const archive = await ExcelArchive.open(path, limits)
    let batches: AsyncGenerator<readonly SheetRow[]> | null = null
    try {
      const workbook = await readWorkbook(archive, limits)
      const part = chooseSheet(workbook.sheets, sheet)
      const strings = await readSharedStrings(archive, workbook.sharedStrings, limits)
      const formats = await readFormats(archive, workbook.styles, limits)
      const reader = new CellReader(strings, formats, workbook.is1904)
      batches = readRows(archive.read(part, limits.sheetBytesMax), reader, limits)
      return new ExcelSheet(archive, batches, await firstBatch(batches), limits)
    } catch (error) {
      await batches?.return(undefined)
      archive.close()
      throw error
    }
  }

  /** Once: the texts of each row in the order of the columns, null where a cell is empty. */
  async *rows(): AsyncGenerator<readonly (string | null)[]> {
    for (const row of this.#pending) yield this.#table.arrange(row)
    for await (const rows of this.#batches) for (const row of rows) yield this.#table.arrange(row)
  }

  /** After the rows: what each column holds. */
  get types(): readonly CellType[] {
    return this.#table.types.map((type) => type ?? "VARCHAR")
  }

  async close(): Promise<void> {
    await this.#batches.return(undefined)
    this.#archive.close()
  }
}

/** The first with a row; empty where there is none. */
async function firstBatch(batches: AsyncGenerator<readonly SheetRow[]>): Promise<readonly SheetRow[]> {
  for (;;) {
    const { done, value } = await batches.next()
    if (done === true) return []
    if (value.length > 0) return value
  }
}

interface SheetRow {
  readonly number: number
  /** By the index of their column; at least one. */
  readonly cells: ReadonlyMap<number, Cell>
}

/** The columns that the first row names, and what the rows hold in them. */
class SheetTable {
  readonly columns: readonly string[]
  readonly types: (CellType | null)[]
  /** From the index of a column in the sheet to that among the named. */
  readonly #places: ReadonlyMap<number, number>
  readonly #limits: ExcelLimits
  #cells = 0
  #length = 0

  constructor({ cells }: SheetRow, limits: ExcelLimits) {
    const { columnsMax } = limits
    const named = [...cells].toSorted(([one], [other]) => one - other)
    if (named.length > columnsMax) throw unreadable(`it has ${named.length} columns; at most ${columnsMax}`)
    this.columns = named.map(([, { text }]) => text)
    this.types = named.map(() => null)
    this.#places = new Map(named.map(([index], place) => [index, place]))
    this.#limits = limits
  }

  arrange({ number, cells }: SheetRow): readonly (string | null)[] {
    const { cellsMax, textLengthMax } = this.#limits
    this.#cells += this.columns.length
    if (this.#cells > cellsMax)
      throw unreadable(`it has more than ${cellsMax} cells; save the sheet as CSV for more`)
    const row: (string | null)[] = this.columns.map(() => null)
    for (const [index, { type, text }] of cells) {
      const place = this.#places.get(index)
      if (place === undefined)
        throw unreadable(
          `${columnLetters(index)}${number} has a value, but its column has no name in the first row`,
        )
      row[place] = text
      this.types[place] = commonType(this.types[place] ?? null, type)
      this.#length += text.length
    }
    if (this.#length > textLengthMax)
      throw unreadable(`it has more than ${textLengthMax} characters; save the sheet as CSV for more`)
    return row
  }
}

interface SheetEntry {
  readonly name: string
  readonly part: string
  readonly isHidden: boolean
}

interface Workbook {
  readonly sheets: readonly SheetEntry[]
  readonly sharedStrings: string | null
  readonly styles: string | null
  readonly is1904: boolean
}

function chooseSheet(sheets: readonly SheetEntry[], name: string | undefined): string {
  const found = sheets.find((sheet) => (name === undefined ? !sheet.isHidden : sheet.name === name))
  if (found) return found.part
  if (name === undefined) throw unreadable("it has no sheet")
  throw new UsageError(
    `there is no sheet ${name}; the sheets are ${sheets.map((one) => one.name).join(", ")}`,
  )
}

async function readWorkbook(archive: ExcelArchive, limits: ExcelLimits): Promise<Workbook> {
  const main = (await readRelationships(archive, "", limits)).find(
    ({ type }) => type === "officeDocument",
  )?.part
  if (main === undefined) throw unreadable("its archive holds no workbook")
  if (main.endsWith(".bin")) throw unreadable("it is a binary Excel file (.xlsb): save it as .xlsx")
  const relationships = await readRelationships(archive, main, limits)
  const worksheets = new Map(
    relationships.filter(({ type }) => type === "worksheet").map(({ id, part }) => [id, part]),
  )
  const sheets: SheetEntry[] = []
  let is1904 = false
  await readXml(archive.read(main, limits.partBytesMax), {
    open: (element, attributes) => {
      if (element === "workbookPr") is1904 = isTrue(attributes.get("date1904"))
      const part = element === "sheet" ? worksheets.get(attributes.get("id") ?? "") : undefined
      if (part === undefined) return
      const isHidden = (attributes.get("state") ?? "visible") !== "visible"
      sheets.push({ name: attributes.get("name") ?? "", part, isHidden })
    },
  })
  const partOf = (wanted: string): string | null =>
    relationships.find(({ type }) => type === wanted)?.part ?? null
  return { sheets, sharedStrings: partOf("sharedStrings"), styles: partOf("styles"), is1904 }
}

interface Relationship {
  readonly id: string
  /** The last word of its URI, which is the same in the transitional and the strict form. */
  readonly type: string
  readonly part: string
}

/** Of a part, or of the archive itself where that is empty. */
async function readRelationships(
  archive: ExcelArchive,
  part: string,
  { partBytesMax }: ExcelLimits,
): Promise<readonly Relationship[]> {
  const folder = posix.dirname(part)
  const found: Relationship[] = []
  await readXml(archive.read(posix.join(folder, "_rels", `${posix.basename(part)}.rels`), partBytesMax), {
    open: (element, attributes) => {
      if (element !== "Relationship" || attributes.get("TargetMode") === "External") return
      const target = attributes.get("Target") ?? ""
      found.push({
        id: attributes.get("Id") ?? "",
        type: posix.basename(attributes.get("Type") ?? ""),
        part: target.startsWith("/") ? target.slice(1) : posix.join(folder, target),
      })
    },
  })
  return found
}

async function readSharedStrings(
  archive: ExcelArchive,
  part: string | null,
  { sharedStringsBytesMax, rowLengthMax }: ExcelLimits,
): Promise<readonly string[]> {
  const strings: string[] = []
  if (part === null) return strings
  const content = new TextContent(rowLengthMax)
  await readXml(archive.read(part, sharedStringsBytesMax), {
    open: (element) => {
      if (element === "si") content.begin()
      content.open(element)
    },
    text: (text) => content.add(text),
    close: (element) => {
      content.close(element)
      if (element === "si") strings.push(unescapeText(content.text))
    },
  })
  return strings
}

/** The text of a string in one piece, also where its runs have formats of their own. How it is pronounced is no part of it. */
class TextContent {
  text = ""
  readonly #lengthMax: number
  #isText = false
  #isPhonetic = false

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax
  }

  begin(): void {
    this.text = ""
  }

  open(element: string): void {
    if (element === "rPh") this.#isPhonetic = true
    if (element === "t" || element === "v") this.#isText = !this.#isPhonetic
  }

  add(text: string): void {
    if (!this.#isText) return
    this.text += text
    if (this.text.length > this.#lengthMax)
      throw unreadable(`a cell has more than ${this.#lengthMax} characters`)
  }

  close(element: string): void {
    if (element === "rPh") this.#isPhonetic = false
    if (element === "t" || element === "v") this.#isText = false
  }
}

/** What the format of each cell style shows. */
async function readFormats(
  archive: ExcelArchive,
  part: string | null,
  { partBytesMax }: ExcelLimits,
): Promise<readonly DateParts[]> {
  const codes = new Map<number, string>()
  const styles: number[] = []
  if (part === null) return []
  let isCellStyle = false
  await readXml(archive.read(part, partBytesMax), {
    open: (element, attributes) => {
      const id = Number(attributes.get("numFmtId"))
      if (element === "numFmt") codes.set(id, attributes.get("formatCode") ?? "")
      if (element === "cellXfs") isCellStyle = true
      if (element === "xf" && isCellStyle) styles.push(id)
    },
    close: (element) => {
      if (element === "cellXfs") isCellStyle = false
    },
  })
  return styles.map((id) => {
    const code = codes.get(id)
    return code === undefined ? builtInParts(id) : partsOfFormat(code)
  })
}

/** What a cell says of itself, and the text in it. */
interface RawCell {
  readonly column: number
  readonly row: number
  readonly type: string
  readonly style: number
}

class CellReader {
  readonly #strings: readonly string[]
  readonly #formats: readonly DateParts[]
  readonly #is1904: boolean

  constructor(strings: readonly string[], formats: readonly DateParts[], is1904: boolean) {
    this.#strings = strings
    this.#formats = formats
    this.#is1904 = is1904
  }

  /** Null for an empty cell. */
  read(raw: RawCell, text: string): Cell | null {
    if (text === "") return null
    switch (raw.type) {
      case "n":
        return this.#readNumber(raw, text)
      case "b":
        return { type: "BOOLEAN", text: String(isTrue(text)) }
      case "d":
        return isoCell(text)
      case "s": {
        const shared = /^\d+$/.test(text) ? this.#strings[Number(text)] : undefined
        if (shared === undefined) throw unreadable(`${addressOf(raw)} names a text that is not in the file`)
        return shared === "" ? null : { type: "VARCHAR", text: shared }
      }
      default:
        return { type: "VARCHAR", text: unescapeText(text) }
    }
  }

  #readNumber(raw: RawCell, text: string): Cell {
    const value = Number(text)
    if (!Number.isFinite(value)) throw unreadable(`${addressOf(raw)} is no number: ${text.slice(0, 40)}`)
    const parts = this.#formats[raw.style] ?? { hasDate: false, hasTime: false }
    return dateCell(value, parts, this.#is1904)
  }
}

/** The rows that came with each piece of the XML; those without a value are left out. */
async function* readRows(
  pieces: AsyncIterable<string>,
  reader: CellReader,
  { rowLengthMax }: ExcelLimits,
): AsyncGenerator<readonly SheetRow[]> {
  let rows: SheetRow[] = []
  let isTable = false
  let number = 0
  let cells = new Map<number, Cell>()
  let raw: RawCell = { column: -1, row: 0, type: "n", style: 0 }
  let length = 0
  const content = new TextContent(rowLengthMax)
  const parser = new XmlParser({
    open: (element, attributes) => {
      if (element === "sheetData") isTable = true
      if (!isTable) return
      if (element === "row") {
        number = readRowNumber(attributes.get("r"), number)
        raw = { ...raw, column: -1 }
        cells = new Map()
        length = 0
      }
      if (element === "c") {
        content.begin()
        raw = {
          column: readColumn(attributes.get("r"), raw.column),
          row: number,
          type: attributes.get("t") ?? "n",
          style: Number(attributes.get("s") ?? 0),
        }
      }
      content.open(element)
    },
    text: (text) => content.add(text),
    close: (element) => {
      content.close(element)
      if (element === "sheetData") isTable = false
      if (!isTable) return
      if (element === "c") {
        const cell = reader.read(raw, content.text)
        if (!cell) return
        cells.set(raw.column, cell)
        length += cell.text.length
        if (length > rowLengthMax) throw unreadable(`row ${number} has more than ${rowLengthMax} characters`)
      }
      if (element === "row" && cells.size > 0) rows.push({ number, cells })
    },
  })
  for await (const piece of pieces) {
    parser.write(piece)
    yield rows
    rows = []
  }
  parser.close()
}

/** A cell that does not say where it is follows the one before. */
function readColumn(reference: string | undefined, before: number): number {
  const letters =
    reference === undefined ? columnLetters(before + 1) : /^([A-Z]{1,3})\d{1,7}$/.exec(reference)?.[1]
  if (letters === undefined) throw unreadable(`${reference?.slice(0, 40) ?? ""} is no cell`)
  const column = Array.from(letters).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
  if (column >= sheetColumnsMax) throw unreadable(`a row has more than ${sheetColumnsMax} columns`)
  return column
}

function readRowNumber(reference: string | undefined, before: number): number {
  if (reference === undefined) return before + 1
  if (!/^\d{1,7}$/.test(reference)) throw unreadable(`${reference.slice(0, 40)} is no row`)
  return Number(reference)
}

const addressOf = ({ column, row }: RawCell): string => `${columnLetters(column)}${row}`
const isTrue = (text: string | undefined): boolean => text === "1" || text === "true"
