/** Stacked bars over days, drawn as SVG; each bar says its figures when it is pointed at or focused. */
import { type ReactNode, useState } from "react"
import { seriesColors } from "./colors.ts"

export interface DayBar {
  readonly label: string
  /** One per series, in the order of `names`. */
  readonly values: readonly number[]
}

const height = 160
const gap = 0.22

export function StackedBars({
  title,
  names,
  bars,
  format,
}: {
  title: string
  names: readonly string[]
  bars: readonly DayBar[]
  format: (value: number) => string
}): ReactNode {
  const [at, setAt] = useState<number | null>(null)
  const totals = bars.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const top = Math.max(...totals, Number.MIN_VALUE)
  const shown = at === null ? null : bars[at]
  return (
    <figure className="flex flex-col gap-2">
      <div className="number flex min-h-5 justify-between gap-3 text-xs">
        <span className="text-soft">
          {shown ? shown.label : `most in a day ${format(top === Number.MIN_VALUE ? 0 : top)}`}
        </span>
        {shown && at !== null ? <strong className="font-medium">{format(totals[at] ?? 0)}</strong> : null}
      </div>
      <svg
        viewBox={`0 0 ${Math.max(1, bars.length)} ${height}`}
        preserveAspectRatio="none"
        className="bg-sunken/60 h-40 w-full rounded-md"
        role="img"
        aria-label={`${title}: ${bars.length} days, ${format(totals.reduce((sum, value) => sum + value, 0))} in all`}
        onMouseLeave={() => setAt(null)}
      >
        {bars.map(({ label, values }, index) => (
          <g key={label} onMouseEnter={() => setAt(index)}>
            <rect x={index} y={0} width={1} height={height} fill="transparent" />
            {stack(values).map(([from, to], series) => (
              <rect
                key={names[series]}
                x={index + gap / 2}
                width={1 - gap}
                y={height - (to / top) * height}
                height={((to - from) / top) * height}
                fill={seriesColors[series % seriesColors.length]}
                opacity={at === null || at === index ? 1 : 0.55}
              />
            ))}
          </g>
        ))}
      </svg>
      <div className="text-soft number flex justify-between text-xs">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
    </figure>
  )
}

function stack(values: readonly number[]): [number, number][] {
  let base = 0
  return values.map((value) => {
    const from = base
    base += value
    return [from, base]
  })
}
