import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import {
  type ExcelParts,
  type WholeSheet,
  excelParts,
  readExcel,
  sheetXml,
  writeParts,
} from "../../test/excel-file.ts"
import { type ExcelLimits, excelLimits } from "./excel-archive.ts"

const folder = mkdtempSync(join(tmpdir(), "umpire-excel-"))
const path = join(folder, "in.xlsx")
afterAll(() => rmSync(folder, { recursive: true }))

const read = async (options: Parameters<typeof readExcel>[1] = {}): Promise<WholeSheet> =>
  await readExcel(path, options)

async function readParts(parts: ExcelParts): Promise<WholeSheet> {
  await writeParts(path, Object.entries(parts))
  return await read()
}

const text = (value: string): string => `<c t="inlineStr"><is><t>${value}</t></is></c>`
const plain = `<row>${text("text")}</row><row>${text("one")}</row>`

const attributes = (count: number): string => Array.from({ length: count }, (_, at) => `a${at}="1"`).join(" ")

test("texts are shared, inline, rich or of a formula, and keep what XML cannot hold", async () => {
  const strings =
    '<si><t>head</t></si><si><t xml:space="preserve"> shared </t></si><si><r><rPr><b/></rPr><t>ri</t></r><r><t>ch</t></r><rPh sb="0" eb="1"><t>spoken</t></rPh></si><si><t/></si>'
  const rows = [
    '<row r="1"><c r="A1" t="s"><v>0</v></c></row>',
    '<row r="2"><c r="A2" t="s"><v>1</v></c></row>',
    '<row r="3"><c r="A3" t="s"><v>2</v></c></row>',
    '<row r="4"><c r="A4" t="str"><f>CONCAT("a","b")</f><v>a&amp;b &#8364; &lt;</v></c></row>',
    `<row r="5">${text("<![CDATA[<in>]]>_x000D_\n_x005F_x0041_")}</row>`,
    '<row r="6"><c r="A6" t="e"><v>#N/A</v></c></row>',
    '<row r="7"><c r="A7" t="s"><v>3</v></c></row>',
  ]
  const { columns, rows: found, types } = await readParts(excelParts(rows.join(""), { strings }))
  expect([columns, types]).toEqual([["head"], ["VARCHAR"]])
  expect(found.map(([value]) => value)).toEqual([" shared ", "rich", "a&b € <", "<in>\r\n_x0041_", "#N/A"])
})

test("a column has the type that fits its cells, and cells that are empty have none", async () => {
  const styles =
    '<numFmts><numFmt numFmtId="170" formatCode="dd/mm/yyyy hh:mm"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>' +
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="20"/></cellXfs>'
  const head = ["whole", "real", "flag", "day", "time", "hour", "mixed", "none", "iso"].map(text).join("")
  const rows = [
    `<row>${head}</row>`,
    '<row><c><v>1</v></c><c><v>2</v></c><c t="b"><v>1</v></c><c s="1"><v>46024</v></c><c s="2"><v>46024.5</v></c><c s="3"><v>0.25</v></c><c><v>7</v></c><c s="1"/><c t="d"><v>2026-01-02T03:04:05</v></c></row>',
    // Nothing stands in it.
    '<row r="3"><c r="A3" s="1"/></row>',
    `<row r="9"><c r="A9"><v>-3</v></c><c r="B9"><v>0.10000000000000001</v></c><c r="C9" t="b"><v>0</v></c><c r="D9" s="1"><v>1</v></c><c r="E9" s="1"><v>46024</v></c><c r="G9" t="inlineStr"><is><t>seven</t></is></c><c r="I9" t="d"><v>2026-01-02</v></c></row>`,
  ]
  const { rows: found, types } = await readParts(excelParts(rows.join(""), { styles }))
  expect(types).toEqual([
    "BIGINT",
    "DOUBLE",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIME",
    "VARCHAR",
    "VARCHAR",
    "TIMESTAMP",
  ])
  expect(found).toEqual([
    ["1", "2", "true", "2026-01-02", "2026-01-02 12:00:00", "06:00:00", "7", null, "2026-01-02 03:04:05"],
    ["-3", "0.1", "false", "1900-01-01", "2026-01-02", null, "seven", null, "2026-01-02"],
  ])
})

test("days count from 1904 where the workbook says so", async () => {
  const parts = excelParts(`<row>${text("day")}</row><row><c s="0"><v>44562</v></c></row>`, {
    styles: '<cellXfs><xf numFmtId="14"/></cellXfs>',
  })
  const workbook = String(parts["xl/workbook.xml"]).replace("<sheets>", '<workbookPr date1904="1"/><sheets>')
  expect((await readParts({ ...parts, "xl/workbook.xml": workbook })).rows).toEqual([["2026-01-02"]])
})

test("a table may begin anywhere, and prefixes of names do not matter", async () => {
  const rows = `<x:row r="3"><x:c r="C3" t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c><x:c r="AA3"><x:v>1</x:v></x:c></x:row>
    <x:row r="4"><x:c r="AA4"><x:v>2</x:v></x:c></x:row>`
  const sheet = `<x:worksheet xmlns:x="s"><x:sheetData>${rows}</x:sheetData><x:row><x:c><x:v>3</x:v></x:c></x:row></x:worksheet>`
  const found = await readParts({ ...excelParts(""), "xl/worksheets/sheet1.xml": sheet })
  expect([found.columns, found.rows]).toEqual([["a", "1"], [[null, "2"]]])
})

test("the sheet is the first that is not hidden, or the one that is named", async () => {
  const parts = excelParts("")
  const sheets = ["Chart", "Hidden", "Shown", "Last"]
  const numbered = sheets.map((name, at) => {
    const state = name === "Hidden" ? ' state="hidden"' : ""
    return `<sheet name="${name}" sheetId="${at + 1}"${state} r:id="s${at}"/>`
  })
  const related = sheets.map((name, at) => {
    const type = name === "Chart" ? "chartsheet" : "worksheet"
    return `<Relationship Id="s${at}" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/${type}" Target="${name}.xml"/>`
  })
  await writeParts(
    path,
    Object.entries({
      ...parts,
      "xl/workbook.xml": `<workbook xmlns:r="r"><sheets>${numbered.join("")}</sheets></workbook>`,
      "xl/_rels/workbook.xml.rels": `<Relationships>${related.join("")}</Relationships>`,
      ...Object.fromEntries(sheets.map((name) => [`xl/${name}.xml`, sheetXml(`<row>${text(name)}</row>`)])),
    }),
  )
  expect((await read()).columns).toEqual(["Shown"])
  expect((await read({ sheet: "Hidden" })).columns).toEqual(["Hidden"])
  expect((await read({ sheet: "Last" })).columns).toEqual(["Last"])
  await expect(read({ sheet: "Chart" })).rejects.toThrow(
    "there is no sheet Chart; the sheets are Hidden, Shown, Last",
  )
})

/** A file of the kind that .xls and encrypted workbooks are, with an entry of this name. */
const compound = (content: string): Buffer => {
  const bytes = Buffer.alloc(2048)
  bytes.write("d0cf11e0a1b11ae1", "hex")
  bytes.writeUInt16LE(9, 30)
  bytes.writeUInt32LE(1, 48)
  bytes.write(content, 1024, "utf16le")
  return bytes
}

describe("refused in a sentence", () => {
  const good = excelParts(plain)
  const sheet = "xl/worksheets/sheet1.xml"
  test.each([
    ["an empty file", Buffer.alloc(0), "it is no .xlsx file, as it is no zip archive"],
    ["a CSV file", Buffer.from("text\none\n"), "it is no .xlsx file, as it is no zip archive"],
    ["an old Excel file", compound("Workbook"), "it is an old Excel file (.xls): save it as .xlsx"],
    [
      "the head of an old Excel file",
      compound("").subarray(0, 8),
      "it is an old Excel file (.xls): save it as .xlsx",
    ],
    ["an encrypted file", compound("EncryptedPackage"), "it is encrypted: save it without a password"],
  ])("%s", async (_, bytes, sentence) => {
    writeFileSync(path, bytes)
    await expect(read()).rejects.toThrow(`cannot read the Excel file: ${sentence}`)
  })

  /** `change` gets the bytes, and where the sheet's entry begins in the central directory. */
  test.each<[string, (bytes: Buffer, entry: number) => Buffer | void, string]>([
    ["a truncated file", (bytes) => bytes.subarray(0, bytes.length - 30), "it is cut short or damaged"],
    [
      "a file that lost its middle",
      (bytes) => Buffer.concat([bytes.subarray(0, 200), bytes.subarray(300)]),
      "it is cut short or damaged",
    ],
    [
      "a part that is not what its checksum says",
      (bytes, entry) => void bytes.writeUInt32LE(1, entry + 16),
      "it is cut short or damaged",
    ],
    [
      "a part that is larger than it says",
      (bytes, entry) => void bytes.writeUInt32LE(20, entry + 24),
      "it is cut short or damaged",
    ],
    [
      "a part that says it is huge",
      (bytes, entry) => void bytes.writeUInt32LE(0xffff_fffe, entry + 24),
      "it is cut short or damaged",
    ],
    [
      "a part in a method of compression that is not deflate",
      (bytes, entry) => void bytes.writeUInt16LE(9, entry + 10),
      "it is cut short or damaged",
    ],
    [
      "an encrypted part",
      (bytes, entry) => void bytes.writeUInt16LE(bytes.readUInt16LE(entry + 8) | 1, entry + 8),
      "it is encrypted: save it without a password",
    ],
  ])("%s", async (_, change, sentence) => {
    await writeParts(path, Object.entries(good))
    const bytes = readFileSync(path)
    const entry = bytes.lastIndexOf(Buffer.from(sheet)) - 46
    expect(bytes.readUInt32LE(entry)).toBe(0x02014b50)
    writeFileSync(path, change(bytes, entry) ?? bytes)
    await expect(read()).rejects.toThrow(`cannot read the Excel file: ${sentence}`)
  })

  test.each<[string, ExcelParts, string]>([
    ["an archive of something else", { "a.txt": "a" }, "it has no _rels/.rels"],
    ["one without a workbook", { "_rels/.rels": "<Relationships/>" }, "its archive holds no workbook"],
    [
      "a binary workbook",
      {
        "_rels/.rels":
          '<Relationships><Relationship Type="/officeDocument" Target="xl/workbook.bin"/></Relationships>',
      },
      "it is a binary Excel file (.xlsb): save it as .xlsx",
    ],
    ["a workbook without a sheet", { ...good, "xl/workbook.xml": "<workbook/>" }, "it has no sheet"],
    ["an empty sheet", excelParts("<row/>"), "the sheet is empty: its first row names the columns"],
    [
      "a document type",
      { ...good, [sheet]: `<!DOCTYPE worksheet [<!ENTITY a "aa">]>${sheetXml(`<row>${text("&a;")}</row>`)}` },
      "its XML declares a document type, which is not accepted",
    ],
    [
      "an entity that is not of XML",
      excelParts(`<row>${text("&nbsp;")}</row>`),
      "its XML is broken: Invalid character entity",
    ],
    [
      "XML that is not closed",
      { ...good, [sheet]: "<worksheet><sheetData>" },
      "its XML is broken: Unclosed root tag",
    ],
    ["no XML", { ...good, [sheet]: "text" }, "its XML is broken: Non-whitespace before first tag."],
    [
      "bytes that are not UTF-8",
      { ...good, [sheet]: Buffer.from([0x3c, 0xff, 0x3e]) },
      "it is cut short or damaged",
    ],
    [
      "a name of 200,000 characters",
      { ...good, [sheet]: `<${"n".repeat(200_000)}/>` },
      "its XML is broken: Max buffer length exceeded: tagName",
    ],
    [
      "XML that is nested 65 deep",
      { ...good, "xl/styles.xml": "<a>".repeat(65) + "</a>".repeat(65) },
      "its XML is nested more than 64 deep",
    ],
    [
      "an element with 257 attributes",
      { ...good, "xl/styles.xml": `<a ${attributes(257)}/>` },
      "an element of its XML has more than 256 attributes",
    ],
    [
      "a shared text that is not there",
      excelParts('<row><c t="s"><v>0</v></c></row>'),
      "A1 names a text that is not in the file",
    ],
    [
      "a number that is none",
      excelParts(`${plain}<row r="3"><c r="A3"><v>many</v></c></row>`),
      "A3 is no number: many",
    ],
    [
      "a value under no name",
      excelParts(`${plain}<row r="3"><c r="B3"><v>1</v></c></row>`),
      "B3 has a value, but its column has no name in the first row",
    ],
    ["a cell that is nowhere", excelParts('<row><c r="1A"><v>1</v></c></row>'), "1A is no cell"],
    [
      "a cell right of the last column",
      excelParts('<row><c r="XFE1"><v>1</v></c></row>'),
      "a row has more than 16384 columns",
    ],
    ["a row that is nowhere", excelParts('<row r="first"/>'), "first is no row"],
  ])("%s", async (_, parts, sentence) => {
    await expect(readParts(parts)).rejects.toThrow(`cannot read the Excel file: ${sentence}`)
  })

  test("two parts of one name", async () => {
    await writeParts(path, [...Object.entries(good), ["XL/workbook.xml", ""]])
    await expect(read()).rejects.toThrow("its archive has two parts called XL/workbook.xml")
  })

  test("not refused: 64 levels and 256 attributes", async () => {
    const styles = `<a ${attributes(256)}/>`
    expect((await readParts({ ...good, "xl/styles.xml": styles })).rows).toEqual([["one"]])
    expect(
      (await readParts({ ...good, "xl/styles.xml": "<a>".repeat(64) + "</a>".repeat(64) })).rows,
    ).toEqual([["one"]])
  })
})

describe("a limit is reached and not passed", () => {
  const parts = excelParts(
    `<row>${text("a")}${text("b")}</row><row>${text("12345")}${text("6789")}</row><row>${text("1")}</row>`,
    {
      strings: `<si><t>${"s".repeat(100)}</t></si>`,
      styles: `<a>${"s".repeat(2000)}</a>`,
    },
  )
  const bytesOf = (part: string): number => Buffer.byteLength(String(parts[part]))

  test.each<[keyof ExcelLimits, () => number, string]>([
    ["fileBytesMax", () => statSync(path).size, "it has N bytes; at most "],
    ["partsMax", () => Object.keys(parts).length, "its archive has N parts; at most "],
    ["partBytesMax", () => bytesOf("xl/styles.xml"), "xl/styles.xml expands to N bytes; at most "],
    [
      "sharedStringsBytesMax",
      () => bytesOf("xl/sharedStrings.xml"),
      "xl/sharedStrings.xml expands to N bytes; at most ",
    ],
    [
      "sheetBytesMax",
      () => bytesOf("xl/worksheets/sheet1.xml"),
      "xl/worksheets/sheet1.xml expands to N bytes; at most ",
    ],
    ["columnsMax", () => 2, "it has N columns; at most "],
    ["cellsMax", () => 4, "it has more than "],
    ["rowLengthMax", () => 100, "a cell has more than "],
    ["textLengthMax", () => 10, "it has more than "],
  ])("%s", async (name, measure, sentence) => {
    await writeParts(path, Object.entries(parts))
    const most = measure()
    const { rows } = await read({ limits: { ...excelLimits, [name]: most } })
    expect(rows).toEqual([
      ["12345", "6789"],
      ["1", null],
    ])
    await expect(read({ limits: { ...excelLimits, [name]: most - 1 } })).rejects.toThrow(
      `cannot read the Excel file: ${sentence.replace("N", String(most))}${most - 1}`,
    )
  })

  test("the length of a row", async () => {
    await writeParts(
      path,
      Object.entries(
        excelParts(`<row>${text("a")}${text("b")}</row><row>${text("12345")}${text("6789")}</row>`),
      ),
    )
    expect((await read({ limits: { ...excelLimits, rowLengthMax: 9 } })).rows).toEqual([["12345", "6789"]])
    await expect(read({ limits: { ...excelLimits, rowLengthMax: 8 } })).rejects.toThrow(
      "row 2 has more than 8 characters",
    )
  })
})
