/** How tables are written: in which encoding, and with what between their columns. The same for every reader of CSV. */

/**
 * The text of a file in UTF-8, or in Windows-1252 (Latin-1), which older programs write. Null where it is neither: of a file that has
 * characters of several bytes, those that are broken are mistakes.
 */
export function decodeTable(bytes: Uint8Array): string | null {
  const utf8 = new TextDecoder().decode(bytes)
  if (!utf8.includes("\ufffd")) return utf8
  return isNoLatin(utf8) ? null : new TextDecoder("windows-1252").decode(bytes)
}

/** Of what was decoded as UTF-8: whole characters of several bytes, or the first of all code points, which is no text in any encoding. */
export const isNoLatin = (utf8: string): boolean => /[^\p{ASCII}\ufffd]/u.test(utf8) || utf8.includes("\0")

export const isExcelName = (name: string): boolean => /\.xls[xbm]?$/i.test(name)
/** Nothing here reads workbooks; this is what to do instead. */
export const excelWords = "Save the sheet as CSV: in Excel, File, Save As, “CSV UTF-8”."

const separators = [",", ";", "\t"] as const

/** What the first line has most often outside of quotes; a comma where it has none. */
export function separatorOf(text: string): (typeof separators)[number] {
  const [header = ""] = text.split(/\r\n|\n|\r/, 1)
  const plain = header.replaceAll(/"[^"]*"/g, "")
  const counts = separators.map((separator) => [separator, plain.split(separator).length] as const)
  return counts.toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? ","
}

/** For `csv-parse`: an empty line, or a row without anything in its cells, is no row anywhere. */
export const csvOptions = (text: string) =>
  ({
    bom: true,
    delimiter: separatorOf(text),
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  }) as const
