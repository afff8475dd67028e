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

export function browserStorage(userId: string, organizationId: string): BrowserStorage {
  const key = (entry: string): string => `${prefix}${userId}.${organizationId}.${entry}`
  return {
    read: (entry) => {
      try {
        return JSON.parse(localStorage.getItem(key(entry)) ?? "null") ?? undefined
      } catch {
        return undefined
      }
    },
    write: (entry, value) => {
      try {
        localStorage.setItem(key(entry), JSON.stringify(value))
        for (const watcher of watchers) watcher()
      } catch {
        // Full or forbidden storage costs the convenience, not the page.
        localStorage.removeItem(key(entry))
      }
    },
    remove: (entry) => localStorage.removeItem(key(entry)),
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
  for (const storage of [localStorage, sessionStorage])
    for (const key of Object.keys(storage))
      if (key.startsWith(prefix) && !keptAtSignOut.has(key)) storage.removeItem(key)
}
