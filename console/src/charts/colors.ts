/** Colors of series, told apart also by those who see fewer colors (after Okabe and Ito), fit for light and dark. */
const palette = [
  "#2f9d7c",
  "#3a7fd0",
  "#d9822b",
  "#b05ea8",
  "#8a9a1f",
  "#c9503c",
  "#4aa8b8",
  "#7a6fd0",
  "#a07a4a",
  "#5b8c5a",
  "#c7618f",
  "#6b7785",
] as const

export const restColor = "#9aa0a6"
/** Grey too, but read against the panel alone. */
export const abstainedColor = "#6b7785"

/** Results and answers mean something, so their colors do too. */
const meanings: Readonly<Record<string, string>> = {
  success: "#2f9d7c",
  error: "#c9503c",
  cancelled: "#d9822b",
  yes: "#2f9d7c",
  no: "#3a7fd0",
  abstain: abstainedColor,
}

export type Colors = (key: string | null) => string

/**
 * A color for each key. Those of the catalog have theirs by their place in it, so that a model looks the same on every
 * page; others begin at a place that depends on their name only and step aside for one that is taken. Null is the rest.
 */
export function colorsOf(keys: readonly (string | null)[], catalog: readonly string[] = []): Colors {
  const taken = new Map<string, string>()
  const fixed = [...new Set(catalog)].toSorted()
  for (const [index, key] of fixed.entries()) taken.set(key, palette[index % palette.length] ?? restColor)
  for (const key of keys) {
    if (key === null || taken.has(key)) continue
    taken.set(key, meanings[key] ?? freeColor(key, new Set(taken.values())))
  }
  return (key) => (key === null ? restColor : (taken.get(key) ?? restColor))
}

function freeColor(key: string, taken: ReadonlySet<string>): string {
  const start = hash(key) % palette.length
  const order = [...palette.slice(start), ...palette.slice(0, start)]
  return order.find((color) => !taken.has(color)) ?? order[0] ?? restColor
}

/** FNV-1a: short, and it spreads names that differ in one letter. */
function hash(text: string): number {
  let value = 0x81_1c_9d_c5
  for (const character of text) {
    value ^= character.codePointAt(0) ?? 0
    value = Math.imul(value, 0x01_00_01_93)
  }
  return value >>> 0
}
