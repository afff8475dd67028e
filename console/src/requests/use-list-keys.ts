/** Keys that move through a list without the mouse; while one types or a dialog is open they do nothing. */
import { useEffect, useRef } from "react"

export function useListKeys(actions: Readonly<Partial<Record<string, () => void>>>): void {
  const latest = useRef(actions)
  useEffect(() => {
    latest.current = actions
  })
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const act = latest.current[event.key]
      if (!act || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (isBusy(event)) return
      event.preventDefault()
      act()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
}

/** Enter on a link or button is theirs. */
function isBusy({ target, key }: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open], [role=menu]")) return true
  if (!(target instanceof Element)) return false
  const controls = key === "Enter" ? "a, button, input, textarea, select" : "input, textarea, select"
  return target.closest(controls) !== null
}
