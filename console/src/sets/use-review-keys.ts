/** Labels with the keyboard: the keys of Review, for whatever is labelled. */
import { useEffect } from "react"
import { isWriting } from "../shell/shortcuts.tsx"
import { type KeyedItem, type ReviewAction, actionOfKey } from "./review-keys.ts"

/** Keys work wherever the focus is, except where one writes. */
export function useReviewKeys(current: KeyedItem | undefined, act: (action: ReviewAction) => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isWriting(event.target)) return
      const action = actionOfKey(event.key, current)
      if (!action) return
      event.preventDefault()
      act(action)
    }
    document.addEventListener("keydown", press)
    return () => document.removeEventListener("keydown", press)
  })
}
