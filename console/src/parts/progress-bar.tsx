/** How much of some work is done, as a bar. */
import type { ReactNode } from "react"

export function ProgressBar({
  label,
  value,
  max = 1,
}: {
  label: string
  value: number
  max?: number
}): ReactNode {
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
      className="bg-sunken h-2 overflow-hidden rounded-full"
    >
      <div
        className="bg-bar h-full rounded-full transition-[width]"
        style={{ width: `${(value / max) * 100}%` }}
      />
    </div>
  )
}
