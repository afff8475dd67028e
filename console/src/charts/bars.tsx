/** Stacked bars over days, drawn as SVG on a scale with round steps; a bar says its figures when it is pointed at. */
import { type ReactNode, useState } from "react"
import { seriesColors } from "./colors.ts"
import { roundSteps } from "./round-steps.ts"

interface DayBar {
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
  const totals = bars.map(({ values }) => sum(values))
  const steps = roundSteps(Math.max(0, ...totals))
  const top = steps.at(-1) ?? 1
  const shown = at === null ? null : bars[at]
  const middle = bars[Math.floor(bars.length / 2)]
  return (
    <figure className="flex flex-col gap-1.5">
      <figcaption className="number flex min-h-5 flex-wrap justify-between gap-x-3 text-xs">
        <span className="text-soft">
          {shown ? shown.label : `Most in a day ${format(Math.max(0, ...totals))}`}
        </span>
        {shown ? <DayFigures names={names} bar={shown} format={format} /> : null}
      </figcaption>
      <div className="flex gap-2">
        <ol
          className="number text-soft flex h-40 flex-col-reverse justify-between text-right text-[11px]"
          aria-hidden="true"
        >
          {steps.map((step) => (
            <li key={step} className="flex h-0 items-center justify-end">
              {format(step)}
            </li>
          ))}
        </ol>
        <svg
          viewBox={`0 0 ${Math.max(1, bars.length)} ${height}`}
          preserveAspectRatio="none"
          className="h-40 min-w-0 flex-1 overflow-visible"
          role="img"
          aria-label={`${title}: ${bars.length} days, ${format(sum(totals))} in all`}
          onMouseLeave={() => setAt(null)}
        >
          {steps.map((step) => (
            <line
              key={step}
              x1={0}
              x2={Math.max(1, bars.length)}
              y1={height - (step / top) * height}
              y2={height - (step / top) * height}
              className={step === 0 ? "stroke-strong" : "stroke-line"}
              vectorEffect="non-scaling-stroke"
            />
          ))}
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
                  opacity={at === null || at === index ? 1 : 0.45}
                />
              ))}
            </g>
          ))}
        </svg>
      </div>
      <div className="text-soft number flex justify-between text-[11px]">
        <span>{bars[0]?.label}</span>
        <span className="max-sm:hidden">{middle?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
    </figure>
  )
}

function DayFigures({
  names,
  bar,
  format,
}: {
  names: readonly string[]
  bar: DayBar
  format: (value: number) => string
}): ReactNode {
  return (
    <span className="flex flex-wrap gap-x-3">
      {names.map((name, index) =>
        bar.values[index] ? (
          <span key={name} className="text-soft">
            {name} {format(bar.values[index])}
          </span>
        ) : null,
      )}
      <strong className="font-medium">{format(sum(bar.values))}</strong>
    </span>
  )
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function stack(values: readonly number[]): [number, number][] {
  let base = 0
  return values.map((value) => {
    const from = base
    base += value
    return [from, base]
  })
}
