/** Searches texts that are stored encrypted: they are read page by page until enough match, or enough was read. */
import type { Page, PageRequest } from "../store/pages.ts"

/** What one request reads at most; its answer says where the next one goes on. */
export const searchLimits = { rowsMax: 2_000, charactersMax: 8 * 1024 * 1024 } as const

interface Searched<Stored, Found> {
  /** Rows that are decrypted between two queries. */
  readonly stepRows: number
  readonly read: (page: PageRequest) => Promise<Page<Stored>>
  readonly cursorOf: (stored: Stored) => string
  /** Null where it does not match; `characters` is how much was read. */
  readonly match: (stored: Stored) => { readonly found: Found | null; readonly characters: number }
  readonly signal: AbortSignal
}

export async function search<Stored, Found>(
  { limit, cursor: after }: PageRequest,
  { stepRows, read, cursorOf, match, signal }: Searched<Stored, Found>,
): Promise<Page<Found>> {
  const items: Found[] = []
  let cursor = after ?? null
  let rows = 0
  let characters = 0
  for (;;) {
    signal.throwIfAborted()
    const page = await read({ cursor, limit: stepRows })
    for (const stored of page.items) {
      const matched = match(stored)
      cursor = cursorOf(stored)
      rows += 1
      characters += matched.characters
      if (matched.found !== null) items.push(matched.found)
      const isEnough = rows >= searchLimits.rowsMax || characters >= searchLimits.charactersMax
      if (items.length === limit || isEnough) return { items, nextCursor: cursor }
    }
    if (page.nextCursor === null) return { items, nextCursor: null }
  }
}

const excerptCharacters = 120

/** The text around the first place where it has the words, whatever their case; null where it has them nowhere. */
export function excerptOf(text: string, words: string): string | null {
  const at = text.toLowerCase().indexOf(words.toLowerCase())
  if (at < 0) return null
  const [from, to] = [Math.max(0, at - excerptCharacters), at + words.length + excerptCharacters]
  // A pair of surrogates is not cut in two.
  const cut = text
    .slice(from, to)
    .toWellFormed()
    .replaceAll(/^\uFFFD|\uFFFD$/g, "")
  return `${from > 0 ? "\u2026" : ""}${cut}${to < text.length ? "\u2026" : ""}`
}
