/** Views of the request log that a user keeps under a name, in this browser and for this organization. */
import type { BrowserStorage } from "../parts/storage.ts"
import { type LogView, readLogView, writeLogView } from "./log-view.ts"

interface SavedView {
  readonly name: string
  readonly view: LogView
}

const entry = "views"
const viewsMax = 50
export const viewNameCharactersMax = 60

export function savedViews(storage: BrowserStorage): SavedView[] {
  const found = storage.read(entry)
  if (!Array.isArray(found)) return []
  return found.flatMap((one: { name?: unknown; search?: unknown }) =>
    typeof one?.name === "string" && typeof one.search === "object" && one.search !== null
      ? [{ name: one.name, view: readLogView(one.search as Record<string, unknown>) }]
      : [],
  )
}

/** Under a name that is taken it replaces the view. */
export function saveView(storage: BrowserStorage, name: string, view: LogView): void {
  const others = savedViews(storage).filter((one) => one.name !== name)
  write(storage, [...others, { name, view }].slice(-viewsMax))
}

export function deleteView(storage: BrowserStorage, name: string): void {
  write(
    storage,
    savedViews(storage).filter((one) => one.name !== name),
  )
}

function write(storage: BrowserStorage, views: readonly SavedView[]): void {
  storage.write(
    entry,
    views.map(({ name, view }) => ({ name, search: writeLogView(view) })),
  )
}

export const isSameView = (one: LogView, other: LogView): boolean =>
  JSON.stringify(writeLogView(one)) === JSON.stringify(writeLogView(other))
