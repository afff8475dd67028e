/** Moves the rows of a list: by dragging their handles, or by the arrow keys. */
import { type DragEvent, type KeyboardEvent, type ReactNode, useState } from "react"
import { flushSync } from "react-dom"
import { Icon } from "./icon.tsx"
import { t } from "../i18n/translate.ts"

const steps: Partial<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1 }

export type Reorder = ReturnType<typeof useReorder>

/** Handlers for the rows of one list; rows of other lists are not accepted. */
export function useReorder(count: number, onMove: (from: number, to: number) => void) {
  const [from, setFrom] = useState<number | null>(null)
  const [over, setOver] = useState<number | null>(null)
  const [said, setSaid] = useState("")
  const end = (): void => {
    setFrom(null)
    setOver(null)
  }
  const step = (event: KeyboardEvent<HTMLElement>, index: number): void => {
    const to = index + (steps[event.key] ?? 0)
    if (to === index) return
    event.preventDefault()
    if (to < 0 || to >= count) return
    const element = event.currentTarget
    flushSync(() => {
      onMove(index, to)
      setSaid(t("Moved to place {to} of {number}.", { to: to + 1, number: count }))
    })
    // Browsers take the focus from an element that changes its place.
    element.focus()
  }
  return {
    /** What a screen reader says after a move. */
    said,
    isTarget: (index: number): boolean => over === index && from !== null && from !== index,
    /** For a text field of the row: Alt and an arrow move the row. */
    altKeys: (index: number) => (event: KeyboardEvent<HTMLElement>) => {
      if (event.altKey) step(event, index)
    },
    handle: (index: number) => ({
      draggable: true,
      onKeyDown: (event: KeyboardEvent<HTMLElement>) => step(event, index),
      onDragStart: (event: DragEvent) => {
        event.stopPropagation()
        event.dataTransfer.effectAllowed = "move"
        // Without data nothing is dragged; a type of our own is dropped nowhere else.
        event.dataTransfer.setData("application/x-umpire-row", String(index))
        setFrom(index)
      },
      onDragEnd: end,
    }),
    row: (index: number) => ({
      onDragOver: (event: DragEvent) => {
        if (from === null) return
        event.preventDefault()
        event.stopPropagation()
        setOver(index)
      },
      onDrop: (event: DragEvent) => {
        if (from === null) return
        event.preventDefault()
        event.stopPropagation()
        onMove(from, index)
        end()
      },
    }),
  }
}

/** Not a button element: Firefox drags none. */
export function Handle({ label, drag }: { label: string; drag: ReturnType<Reorder["handle"]> }): ReactNode {
  return (
    <span
      {...drag}
      role="button"
      tabIndex={0}
      aria-label={label}
      title={t("Drag, or press the arrow keys")}
      className="text-soft hover:bg-sunken hover:text-ink grid size-6 shrink-0 cursor-grab place-items-center rounded-md active:cursor-grabbing"
    >
      <Icon name="grip" className="size-3.5" />
    </span>
  )
}

/** Says the last move to those who do not see it. */
export function MoveStatus({ drag }: { drag: Reorder }): ReactNode {
  return (
    <span role="status" className="sr-only">
      {drag.said}
    </span>
  )
}
