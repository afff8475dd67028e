/** Dollars as people type them, and cents as the API takes them. */

/** Null when the text is empty; NaN when it is not an amount. */
export function toCents(text: string): number | null {
  const trimmed = text.trim().replace(/^\$/, "").replaceAll(",", "")
  if (trimmed === "") return null
  const [, whole, part = ""] = /^(\d{1,12})(?:\.(\d{1,2}))?$/.exec(trimmed) ?? []
  return whole === undefined ? Number.NaN : Number(whole) * 100 + Number(part.padEnd(2, "0"))
}

export const toDollars = (cents: number | null | undefined): string =>
  cents === null || cents === undefined ? "" : (cents / 100).toFixed(2)
