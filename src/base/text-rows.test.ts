import { describe, expect, test } from "vitest"
import { type RowFormat, readTextRows } from "./text-rows.ts"

const rowsMax = 3
const contents: Readonly<Record<RowFormat, (texts: readonly string[]) => string>> = {
  lines: (texts) => texts.join("\r\n"),
  jsonl: (texts) => texts.map((text) => JSON.stringify({ text })).join("\n\n"),
  csv: (texts) => ["n,text", ...texts.map((text, at) => `${at},"${text}"`)].join("\n"),
}

describe.each(["lines", "jsonl", "csv"] as const)("of %s", (format) => {
  const read = (texts: readonly string[], rest = ""): string[] =>
    readTextRows(contents[format](texts) + rest, format, { rowsMax })

  test("as many rows as are taken are read, without the blank ones", () => {
    expect(read(["one", "two", "three"])).toEqual(["one", "two", "three"])
    expect(read(["one", " ", "three"], "\n\n")).toEqual(["one", "three"])
    expect(() => read([" "])).toThrow(/there are none; 1 to 3 are taken/)
  })

  test("one more is refused, and what comes after it is not read", () => {
    // Neither JSON nor CSV.
    const rest = '\n{"a" "b'
    expect(() => read(["1", "2", "3", "4"], rest)).toThrow(/there are more; 1 to 3 are taken/)
    if (format !== "lines") expect(() => read(["1"], rest)).toThrow(/they are not/)
  })
})

test("a record of CSV that does not end is given up", () => {
  const content = `text\n"${"a".repeat(1024 * 1024 + 2)}"`
  expect(() => readTextRows(content, "csv", { rowsMax })).toThrow(/they are not CSV/)
})
