/** What a page holds while others are looked at: in memory, for a user in an organization, until they sign out. */
import { useSyncExternalStore } from "react"
import { atSignOut, useOrganization, useSession } from "../session.ts"

const held = new Map<string, unknown>()
const watchers = new Set<() => void>()

function change(key: string, value: unknown): void {
  held.set(key, value)
  for (const watcher of watchers) watcher()
}

atSignOut(() => {
  held.clear()
  for (const watcher of watchers) watcher()
})

/** `page` names the place; `none` must be the same object at every call. */
export function useHeld<Value>(
  page: string,
  none: Value,
): readonly [Value, (change: Partial<Value>) => void] {
  const { id: orgId } = useOrganization()
  const key = `${useSession()?.user.id ?? ""} ${orgId} ${page}`
  // Only this hook writes under the key.
  const read = (): Value => (held.get(key) as Value | undefined) ?? none
  const value = useSyncExternalStore(watch, read)
  return [value, (next) => change(key, { ...read(), ...next })]
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => void watchers.delete(watcher)
}
