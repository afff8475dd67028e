import { describe, expect, test } from "vitest"
import { csvCell } from "./save-file.ts"
import { csvRecords, readRows, rowsMax } from "./rows.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const read = (text: string, name = "a.csv") => readRows(bytes(text), name)

test.each([
  ["a,b\n1,2\n", [{ a: "1", b: "2" }]],
  ['a,b\r\n"x, ""y""\nz",2', [{ a: 'x, "y"\nz', b: "2" }]],
  ["a;b\n1,5;2", [{ a: "1,5", b: "2" }]],
  ["a\tb\n1\t", [{ a: "1", b: "" }]],
  ["a\n\n1\n", [{ a: "1" }]],
  ["\uFEFFa,\n1,2", [{ a: "1", "column 2": "2" }]],
])("CSV %j is read by the rules", (text, rows) => {
  expect(read(text).rows).toEqual(rows)
})

test("Latin-1, as older spreadsheets write it, is read as what it says", () => {
  const file = Uint8Array.from([...bytes("text;team\nGr"), 0xfc, 0xdf, 0x65, ...bytes(";a\n;\n")])
  expect(readRows(file, "a.csv").rows).toEqual([{ text: "Grüße", team: "a" }])
})

test("JSON lines keep their columns in order of appearance and turn other values into text", () => {
  const rows = read('{"text": "a", "label": true}\n\n{"text": "b", "more": [1]}\n', "x.jsonl")
  expect(rows.columns).toEqual(["text", "label", "more"])
  expect(rows.rows).toEqual([
    { text: "a", label: "true" },
    { text: "b", more: "[1]" },
  ])
})

describe("what is wrong is refused with its place:", () => {
  test.each([
    ["an unclosed quote", 'a,b\n1,2\n3,"x\ny\nz,1\n', "Line 3, column 2: a quote is opened and never closed"],
    ["a quote inside a cell", 'a,b\n1,5" wide\n', "Line 2, column 2: a quote in the middle of a cell"],
    ["text after a quote", 'a,b\n"1"x,2\n', "Line 2, column 1: text after the closing quote"],
    ["a row with more columns", 'a,b\n"x\ny",2\n1,2,3\n', "Line 4, column 4: the row has another number"],
    ["a row with fewer columns", "a,b\n1,2\n1\n", "Line 3, column 2: the row has another number"],
    ["two columns of one name", "a,b,a\n1,2,3\n", "Line 1, column 3: there is another column “a”"],
    ["no rows", "a,b\n", "The file has no rows"],
    ["JSON that breaks off", '{"a": 1}\n{', "Line 2, character 2: this is not JSON"],
    ["JSON that is no object", '{"a": 1}\n[1]', "Line 2, character 1: this is not a JSON object"],
    ["too many rows", `a\n${"1\n".repeat(rowsMax + 1)}`, `this page takes ${rowsMax}`],
  ])("%s", (_, text, sentence) => {
    expect(() => read(text)).toThrow(sentence)
  })

  test.each([
    ["a broken character", [...bytes("a,b\n1,2\nü, "), 0xe9, 0x0a], "Line 3, character 4: this is not UTF-8"],
    ["UTF-16", [0xff, 0xfe, 0x61, 0x00], "Line 1, character 1: the file is UTF-16"],
    ["a binary file", [...bytes("a\nü"), 0x00, 0x01], "Line 2, character 2: the byte 0"],
    ["an Excel workbook", [0x50, 0x4b, 0x03, 0x04, 0x00], "Save the sheet as CSV"],
  ])("%s", (_, content, sentence) => {
    expect(() => readRows(Uint8Array.from(content), "a.csv")).toThrow(sentence)
  })
})

test("a file at the limit is taken whole", () => {
  expect(read(`a\n${"1\n".repeat(rowsMax)}`).rows).toHaveLength(rowsMax)
})

test.each(["=1+1", "+1", "-1", "@a", "a,b", 'a"b'])(
  "an exported cell %j cannot run as a formula or break the row",
  (value) => {
    const [[cell] = []] = csvRecords(`${csvCell(value)}\n`)
    expect(cell).toBe(/^[=+\-@]/.test(value) ? `'${value}` : value)
  },
)
