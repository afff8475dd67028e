import { parse } from "csv-parse/sync"
import { expect, test } from "vitest"
import { csvOptions, decodeTable, separatorOf } from "./table-text.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

test.each([
  ["UTF-8", bytes("text\nGrüße"), "text\nGrüße"],
  ["UTF-8 with a byte order mark", bytes("\uFEFFtext\nGrüße"), "text\nGrüße"],
  ["Latin-1", Uint8Array.from([...bytes("Gr"), 0xfc, 0xdf, 0x65]), "Grüße"],
  ["Windows-1252", Uint8Array.from([...bytes("5 "), 0x80]), "5 €"],
  ["UTF-8 with a broken character", Uint8Array.from([...bytes("ü "), 0xe9]), null],
  ["a binary file", Uint8Array.from([0x00, 0xff]), null],
])("%s", (_, file, text) => {
  expect(decodeTable(file)).toBe(text)
})

test.each([
  ["text,team\n1;2;3", ","],
  ["text;team\na,b,c;1", ";"],
  ["text\tteam\n", "\t"],
  ['"a,b,c";team', ";"],
  ["text", ","],
  ["", ","],
])("the columns of %j are separated by %j", (text, separator) => {
  expect(separatorOf(text)).toBe(separator)
})

test("empty lines and rows without anything in their cells are no rows", () => {
  const text = "text;team\na;b\n\n;\n  ; \nc;\n"
  expect(parse(text, { ...csvOptions(text), columns: true })).toEqual([
    { text: "a", team: "b" },
    { text: "c", team: "" },
  ])
})
