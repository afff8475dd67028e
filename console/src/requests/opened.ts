/** Which request was opened last from which list, so that the record leads to its neighbours and back. */
import type { BrowserStorage } from "../parts/storage.ts"

const entry = "requests-opened"
const idsMax = 500

interface Opened {
  readonly seqId: string
  readonly list: readonly string[]
}

export function keepOpened(storage: BrowserStorage, seqId: string, list: readonly string[]): void {
  storage.write(entry, { seqId, list: list.slice(0, idsMax) })
}

function read(storage: BrowserStorage): Opened {
  const { seqId, list } = (storage.read(entry) ?? {}) as Partial<Record<keyof Opened, unknown>>
  return {
    seqId: typeof seqId === "string" ? seqId : "",
    list: Array.isArray(list) ? list.filter((one): one is string => typeof one === "string") : [],
  }
}

export const openedRequest = (storage: BrowserStorage): string | null => read(storage).seqId || null

interface Neighbours {
  readonly newer: string | null
  readonly older: string | null
}

export function neighboursOf(storage: BrowserStorage, seqId: string): Neighbours | null {
  const { list } = read(storage)
  const at = list.indexOf(seqId)
  return at < 0 ? null : { newer: list[at - 1] ?? null, older: list[at + 1] ?? null }
}

/** Also to none: a list that is opened later marks no row. */
export function moveOpened(storage: BrowserStorage, seqId: string | null): void {
  storage.write(entry, { ...read(storage), seqId: seqId ?? "" })
}
