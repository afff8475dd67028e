/** What the console remembers in this browser: kept per user and organization, and but for saved views removed at sign-out. */

export interface BrowserStorage {
  /** Undefined where nothing is stored, or what is stored is not JSON. */
  read(entry: string): unknown
  write(entry: string, value: unknown): void
  remove(entry: string): void
}

const prefix = "umpire."
/** Colors and language belong to the browser; saved views hold filters and wait for the next sign-in of their user. */
const isKeptAtSignOut = (key: string): boolean =>
  key === "umpire.theme" || key === "umpire.language" || key.endsWith(".views")

/** Ends at sign-out: an answer that comes later must not be kept again. */
let session = {}

/** In the browser for good (`localStorage`), or for as long as a tab lives (`sessionStorage`). */
export function browserStorage(userId: string, organizationId: string, area: Storage): BrowserStorage {
  const openedIn = session
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
      if (openedIn !== session) return
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
  session = {}
  for (const area of [localStorage, sessionStorage])
    for (const key of Object.keys(area))
      if (key.startsWith(prefix) && !isKeptAtSignOut(key)) area.removeItem(key)
}
