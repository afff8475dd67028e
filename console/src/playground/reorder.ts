/** Moves entries of a list, by dragging or by key. */
import { type DragEvent, useState } from "react"

export function moved<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const rest = list.toSpliced(from, 1)
  const item = list[from]
  return item === undefined || to < 0 || to >= list.length ? [...list] : rest.toSpliced(to, 0, item)
}

/** Drag handlers for the rows of one list; rows of other lists are not accepted. */
export function useReorder(onMove: (from: number, to: number) => void) {
  const [from, setFrom] = useState<number | null>(null)
  const [over, setOver] = useState<number | null>(null)
  const end = (): void => {
    setFrom(null)
    setOver(null)
  }
  return {
    isTarget: (index: number): boolean => over === index && from !== null && from !== index,
    handle: (index: number) => ({
      draggable: true,
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
