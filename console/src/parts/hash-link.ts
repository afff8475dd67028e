/** Values that a link carries in its fragment, which browsers do not send: they reach no log. */
import { useEffect, useRef, useSyncExternalStore } from "react"

/** Null where the address has no such value. */
export const hashValue = (name: string): string | null =>
  new URLSearchParams(location.hash.slice(1)).get(name)

/** The value in the address, also after another link was pasted into the open page. */
export const useHashValue = (name: string): string | null =>
  useSyncExternalStore(onHashChange, () => hashValue(name))

/** Takes the value out of the address and hands it over: when the page opens, and with every link that is pasted into it. */
export function useHashLink(name: string, take: (value: string) => void): void {
  const latest = useRef(take)
  useEffect(() => {
    latest.current = take
  })
  useEffect(() => {
    const look = (): void => {
      const value = hashValue(name)
      if (!value) return
      // Browsers do not report this as a change of the fragment, so it is not looked at again.
      history.replaceState(history.state, "", location.pathname + location.search)
      latest.current(value)
    }
    look()
    return onHashChange(look)
  }, [name])
}

function onHashChange(look: () => void): () => void {
  addEventListener("hashchange", look)
  return () => removeEventListener("hashchange", look)
}
