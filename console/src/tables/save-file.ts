/** Hands a file to the browser's downloads. */

export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([content], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

export function saveCsv(name: string, lines: readonly (readonly string[])[]): void {
  saveFile(name, csvText(lines), "text/csv")
}

const csvText = (lines: readonly (readonly string[])[]): string =>
  lines.map((cells) => cells.map(csvCell).join(",")).join("\n")

/** A CSV cell that a spreadsheet will not run as a formula. */
export function csvCell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
