/** The latest requests made in this browser, so that each can be opened again. */
import type { BrowserStorage } from "../parts/storage.ts"

interface RecentSequence {
  readonly id: string
  readonly at: number
  /** The first words of what was asked. */
  readonly about: string
}

const entry = "sequences"
const entriesMax = 40
const aboutCharactersMax = 80

/** Entries of another form were written by another version, or by hand. */
export function recentSequences(storage: BrowserStorage): RecentSequence[] {
  const found = storage.read(entry)
  return Array.isArray(found) ? found.filter(isRecent) : []
}

export function rememberSequence(storage: BrowserStorage, id: string, about: string): void {
  const words = about.trim().replaceAll(/\s+/g, " ")
  const short = words.length > aboutCharactersMax ? `${words.slice(0, aboutCharactersMax)}…` : words
  const entries = [{ id, at: Date.now(), about: short }, ...recentSequences(storage)]
  storage.write(entry, entries.slice(0, entriesMax))
}

export const forgetSequences = (storage: BrowserStorage): void => storage.remove(entry)

function isRecent(given: unknown): given is RecentSequence {
  const { id, at, about } = (given ?? {}) as Partial<Record<keyof RecentSequence, unknown>>
  return typeof id === "string" && typeof at === "number" && typeof about === "string"
}
