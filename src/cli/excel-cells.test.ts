import { describe, expect, test } from "vitest"
import { builtInParts, columnLetters, dateCell, partsOfFormat, serialOf } from "./excel-cells.ts"

describe("a number format shows a date, a time, both or neither", () => {
  test.each([
    ["General", ""],
    ["0.00E+00", ""],
    ["#,##0.00 [$€-407];[Red]-#,##0.00", ""],
    ['0 "days"', ""],
    [String.raw`0\d`, ""],
    ["@", ""],
    ["[h]:mm:ss", ""],
    ["yyyy-mm-dd", "date"],
    ["[$-409]d mmm yy;@", "date"],
    ["mmmm", "date"],
    ["mm:ss.0", "time"],
    ["h:mm AM/PM", "time"],
    ["dd/mm/yyyy hh:mm", "date time"],
  ])("%s: %s", (code, shown) => expect(wordsOf(partsOfFormat(code))).toBe(shown))

  test.each([
    [0, ""],
    [13, ""],
    [14, "date"],
    [17, "date"],
    [18, "time"],
    [21, "time"],
    [22, "date time"],
    [23, ""],
    [36, "date"],
    [37, ""],
    [45, "time"],
    [46, ""],
    [47, "time"],
    [49, ""],
    [58, "date"],
    [59, ""],
  ])("built-in format %i: %s", (id, shown) => expect(wordsOf(builtInParts(id))).toBe(shown))
})

const wordsOf = ({ hasDate, hasTime }: { hasDate: boolean; hasTime: boolean }): string =>
  [hasDate ? "date" : "", hasTime ? "time" : ""].filter(Boolean).join(" ")

describe("a number with a format of dates", () => {
  test.each([
    [1, "date", "DATE", "1900-01-01"],
    [59, "date", "DATE", "1900-02-28"],
    [61, "date", "DATE", "1900-03-01"],
    [25_569, "date", "DATE", "1970-01-01"],
    [2_958_465, "date", "DATE", "9999-12-31"],
    [2_958_466, "date", "BIGINT", "2958466"],
    [0, "date", "BIGINT", "0"],
    [-1, "date", "BIGINT", "-1"],
    [46_024.25, "date", "TIMESTAMP", "2026-01-02 06:00:00"],
    [46_024, "date time", "TIMESTAMP", "2026-01-02 00:00:00"],
    [20_000.75, "date time", "TIMESTAMP", "1954-10-03 18:00:00"],
    [0, "time", "TIME", "00:00:00"],
    [0.999_999_999_99, "time", "TIME", "23:59:59.999"],
    [1.5, "time", "TIMESTAMP", "1900-01-01 12:00:00"],
  ])("%d as %s is %s %s", (value, shown, type, text) => {
    const parts = { hasDate: shown.includes("date"), hasTime: shown.includes("time") }
    expect(dateCell(value, parts, false)).toEqual({ type, text })
  })
})

test.each([
  ["BIGINT", "123456789012345", 123_456_789_012_345],
  ["BIGINT", "1234567890123456", null],
  ["BIGINT", "-12.50", -12.5],
  ["DOUBLE", "0.1", 0.1],
  ["DOUBLE", "Infinity", null],
  ["DATE", "1900-03-01", 61],
  ["DATE", "1900-02-28", null],
  ["DATE", "9999-12-31", 2_958_465],
  ["DATE", "10000-01-01", null],
  ["DATE", "infinity", null],
  ["TIMESTAMP", "2026-01-02 12:00:00", 46_024.5],
  ["TIME", "18:00:00", 0.75],
  ["VARCHAR", "1", null],
] as const)("%s %s is written as %d", (type, text, serial) => expect(serialOf({ type, text })).toBe(serial))

test.each([
  [0, "A"],
  [25, "Z"],
  [26, "AA"],
  [701, "ZZ"],
  [702, "AAA"],
  [16_383, "XFD"],
])("column %i is %s", (index, letters) => expect(columnLetters(index)).toBe(letters))
