/** A small chart of bars, one of several side by side; its caption reads the bar that is pointed at. */
import { type ReactNode, useState } from "react"

interface SmallBar {
  readonly label: string
  /** One for each part of the bar, from the bottom; none where there is nothing to show. */
  readonly values: readonly number[]
  /** What it is compared with, drawn as a line across the bar. */
  readonly mark?: number
}

export function SmallBars({
  title,
  summary,
  bars,
  colors,
  top,
  read,
}: {
  title: string
  /** The figure of the whole time, shown while no bar is pointed at. */
  summary: string
  bars: readonly SmallBar[]
  /** Of each part of a bar. */
  colors: readonly string[]
  /** The value at the top; the largest bar unless given. */
  top?: number
  read: (bar: SmallBar) => string
}): ReactNode {
  const [at, setAt] = useState<number | null>(null)
  const shown = at === null ? undefined : bars[at]
  const highest = top ?? Math.max(...bars.map(({ values, mark = 0 }) => Math.max(sum(values), mark)))
  const scale = highest > 0 ? highest : 1
  return (
    <figure className="flex min-w-0 flex-col gap-1.5">
      <figcaption className="number flex min-h-9 flex-col text-xs">
        <span className="text-soft flex justify-between gap-2">
          <span className="font-medium">{title}</span>
          {shown ? <span className="truncate">{shown.label}</span> : null}
        </span>
        <span className="truncate">{shown ? read(shown) : summary}</span>
      </figcaption>
      <div
        role="img"
        aria-label={`${title}: ${summary}`}
        className="border-strong flex h-20 border-b"
        onMouseLeave={() => setAt(null)}
      >
        {bars.map((bar, index) => (
          <div
            key={bar.label}
            className="relative flex h-full min-w-0 flex-1 flex-col-reverse items-center"
            onMouseEnter={() => setAt(index)}
          >
            {bar.values.map((value, part) => (
              <span
                key={part}
                className={`w-[82%] ${at === null || at === index ? "" : "opacity-45"}`}
                style={{ height: `${(value / scale) * 100}%`, background: colors[part] }}
              />
            ))}
            {bar.mark === undefined ? null : (
              <span
                className="border-ink absolute inset-x-0 border-t-2 border-dotted"
                style={{ bottom: `${(bar.mark / scale) * 100}%` }}
              />
            )}
          </div>
        ))}
      </div>
      <div className="text-soft number flex justify-between gap-2 text-[11px]" aria-hidden="true">
        <span className="truncate">{bars[0]?.label}</span>
        {bars.length > 1 ? <span className="truncate">{bars.at(-1)?.label}</span> : null}
      </div>
    </figure>
  )
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
