/** How much of some work is done, as a bar. */
import type { ReactNode } from "react"

export function ProgressBar({
  label,
  value,
  failed = 0,
  max = 1,
}: {
  label: string
  value: number
  /** Of the value: what did not succeed. */
  failed?: number
  max?: number
}): ReactNode {
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
      className="bg-sunken flex h-2 overflow-hidden rounded-full"
    >
      <div
        className={`bg-bar h-full transition-[width] ${failed > 0 ? "" : "rounded-e-full"}`}
        style={{ width: `${((value - failed) / max) * 100}%` }}
      />
      {failed > 0 ? (
        <div
          className="bg-bad h-full min-w-1 rounded-e-full transition-[width]"
          style={{ width: `${(failed / max) * 100}%` }}
        />
      ) : null}
    </div>
  )
}
