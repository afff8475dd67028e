/** Values of Excel's cells as texts that DuckDB reads and writes, both ways: dates are numbers there, told by their format alone. */

/** A type of DuckDB. */
export type CellType = "BIGINT" | "DOUBLE" | "BOOLEAN" | "DATE" | "TIMESTAMP" | "TIME" | "VARCHAR"

export interface Cell {
  readonly type: CellType
  readonly text: string
}

/** Excel's own bounds. Characters are those of UTF-16. */
export const sheetRowsMax = 1_048_576
export const sheetColumnsMax = 16_384
export const cellLengthMax = 32_767

const dayMs = 86_400_000
/** Day 0 is 30 December 1899, from 1 March 1900 on: before that Excel counts a 29 February that was not. */
const unixEpochDay = 25_569
const firstSoundDay = 61
const daysMax = 2_958_466
/** Workbooks of old Macintosh computers count from 1 January 1904. */
const days1904 = 1462
const exactDigitsMax = 15

/** The type of a column that has both. */
export function commonType(one: CellType | null, other: CellType): CellType {
  if (one === null || one === other) return other
  const both = [one, other]
  if (both.includes("BIGINT") && both.includes("DOUBLE")) return "DOUBLE"
  if (both.includes("DATE") && both.includes("TIMESTAMP")) return "TIMESTAMP"
  return "VARCHAR"
}

export function numberCell(value: number): Cell {
  return { type: Number.isSafeInteger(value) ? "BIGINT" : "DOUBLE", text: String(value + 0) }
}

/** What a number format shows: a date, a time of day, both or neither. */
export interface DateParts {
  readonly hasDate: boolean
  readonly hasTime: boolean
}

/** Formats that Excel knows by their number (ECMA-376 part 1, 18.8.30), with those of East Asian languages. */
export function builtInParts(id: number): DateParts {
  const hasDate = (id >= 14 && id <= 17) || id === 22 || (id >= 27 && id <= 31) || (id >= 50 && id <= 58)
  const hasTime = (id >= 18 && id <= 22) || (id >= 32 && id <= 35) || id === 45 || id === 47
  return { hasDate: hasDate || id === 36, hasTime }
}

/** By the letters outside quotes, escapes and brackets. Elapsed time such as `[h]:mm` is a number of days. */
export function partsOfFormat(code: string): DateParts {
  const [first = ""] = code
    .toLowerCase()
    .replaceAll(/"[^"]*"|[\\_*]./g, "")
    .split(";")
  if (/\[(?:h+|m+|s+)\]/.test(first)) return { hasDate: false, hasTime: false }
  const letters = first.replaceAll(/\[[^\]]*\]|general|am\/pm|a\/p/g, "")
  const hasTime = /[hs]/.test(letters)
  return { hasDate: /[yd]/.test(letters) || (!hasTime && letters.includes("m")), hasTime }
}

/** A day that no calendar has stays a number. */
export function dateCell(value: number, { hasDate, hasTime }: DateParts, is1904: boolean): Cell {
  if (!hasDate && !hasTime) return numberCell(value)
  if (!hasDate && value >= 0 && value < 1) return { type: "TIME", text: timeText(Math.round(value * dayMs)) }
  const day = is1904 ? value + days1904 : value < firstSoundDay - 1 ? value + 1 : value
  if (value < (is1904 ? 0 : 1) || day >= daysMax) return numberCell(value)
  const ms = Math.round((day - unixEpochDay) * dayMs)
  const date = new Date(ms).toISOString().slice(0, 10)
  const isWhole = ms % dayMs === 0
  if (isWhole && !hasTime) return { type: "DATE", text: date }
  return { type: "TIMESTAMP", text: `${date} ${timeText(((ms % dayMs) + dayMs) % dayMs)}` }
}

/** The last half millisecond of a day is not the next. */
const timeText = (ms: number): string =>
  new Date(Math.min(ms, dayMs - 1)).toISOString().slice(11, 23).replace(".000", "")

/** ISO 8601, as some writers have it in cells of type d. */
export function isoCell(text: string): Cell {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return { type: "DATE", text }
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?$/.test(text))
    return { type: "TIMESTAMP", text: text.replace("T", " ") }
  return { type: "VARCHAR", text }
}

/** The number that stands for a date, a time or a number; null for what has none, or none that keeps all its digits. */
export function serialOf({ type, text }: Cell): number | null {
  switch (type) {
    case "BIGINT":
      return text.replaceAll(/\D/g, "").length <= exactDigitsMax ? Number(text) : null
    case "DOUBLE":
      return finite(Number(text))
    case "TIME":
      return finite(Date.parse(`1970-01-01T${text}Z`) / dayMs)
    case "DATE":
    case "TIMESTAMP": {
      const day = Date.parse(`${text.replace(" ", "T")}${type === "DATE" ? "" : "Z"}`) / dayMs + unixEpochDay
      return day >= firstSoundDay && day < daysMax ? day : null
    }
    case "BOOLEAN":
    case "VARCHAR":
      return null
  }
}

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)

/** Characters that XML cannot hold are written by their code: _x000D_ (ECMA-376 part 1, 22.9.2.19). */
export const escapeText = (text: string): string =>
  text
    .replaceAll(/_(?=x[\dA-Fa-f]{4}[_\p{Cc}\uFFFE\uFFFF])/gu, "_x005F_")
    .replaceAll(/[\p{Cc}\uFFFE\uFFFF]/gu, (character) =>
      character === "\t" || character === "\n"
        ? character
        : `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`,
    )
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")

export const unescapeText = (text: string): string =>
  text
    .replaceAll(/_x([\dA-Fa-f]{4})_/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .toWellFormed()

/** A, B, ... Z, AA, AB, ... */
export function columnLetters(index: number): string {
  const last = String.fromCharCode(65 + (index % 26))
  return index < 26 ? last : columnLetters(Math.floor(index / 26) - 1) + last
}
