/** A value once it has stood still for a moment: what is asked of the server while somebody types. */
import { useEffect, useState } from "react"

const settledMs = 300

export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settledMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
