/** What the console remembers in this browser: kept per user and organization, removed at sign-out. */

export interface BrowserStorage {
  /** Undefined where nothing is stored, or what is stored is not JSON. */
  read(entry: string): unknown
  write(entry: string, value: unknown): void
  remove(entry: string): void
}

const prefix = "umpire."
/** The choice of colors belongs to the browser, not to the user. */
const keptAtSignOut = new Set(["umpire.theme"])

/** In the browser for good (`localStorage`), or for as long as a tab lives (`sessionStorage`). */
export function browserStorage(userId: string, organizationId: string, area: Storage): BrowserStorage {
  const key = (entry: string): string => `${prefix}${userId}.${organizationId}.${entry}`
  return {
    read: (entry) => {
      try {
        return JSON.parse(area.getItem(key(entry)) ?? "null") ?? undefined
      } catch {
        return undefined
      }
    },
    write: (entry, value) => {
      try {
        area.setItem(key(entry), JSON.stringify(value))
        for (const watcher of watchers) watcher()
      } catch {
        // Full or forbidden storage costs the convenience, not the page.
        area.removeItem(key(entry))
      }
    },
    remove: (entry) => area.removeItem(key(entry)),
  }
}

const watchers = new Set<() => void>()

/** Tells of every write in this tab, for what is shown of the storage. */
export function watchBrowserStorage(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}

/** Removes what every user of this browser left, also entries of older versions that named no user. */
export function clearBrowserStorage(): void {
  for (const area of [localStorage, sessionStorage])
    for (const key of Object.keys(area))
      if (key.startsWith(prefix) && !keptAtSignOut.has(key)) area.removeItem(key)
}
