/** Stacked bars over days on a scale with round steps; a bar says its figures when it is pointed at, and is a link. */
import { Link, type LinkProps } from "@tanstack/react-router"
import { type KeyboardEvent, type ReactNode, useState } from "react"
import type { Colors } from "./colors.ts"
import { distinctLabels } from "./distinct-labels.ts"
import { roundSteps } from "./round-steps.ts"
import { t, tn } from "../i18n/translate.ts"

interface DayBar {
  readonly label: string
  /** One per series, in the order of `names`. */
  readonly values: readonly number[]
  /** Where the bar leads. */
  readonly link: Pick<LinkProps, "to" | "params" | "search">
}

export function StackedBars({
  title,
  names,
  colors,
  bars,
  format,
}: {
  title: string
  names: readonly string[]
  colors: Colors
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
          {shown ? shown.label : t("Most in a day {format}", { format: format(Math.max(0, ...totals)) })}
        </span>
        {shown ? <DayFigures names={names} bar={shown} format={format} /> : null}
      </figcaption>
      <div className="flex gap-2">
        <Scale labels={distinctLabels(steps, format)} />
        <div
          className="relative flex h-40 min-w-0 flex-1"
          role="group"
          aria-label={tn(
            bars.length,
            "{title}: {count} day, {format} in all",
            "{title}: {count} days, {format} in all",
            { title, format: format(sum(totals)) },
          )}
          onMouseLeave={() => setAt(null)}
          onKeyDown={stepToNeighbour}
        >
          <Grid steps={steps} top={top} />
          {bars.map((bar, index) => (
            <Link
              key={bar.label}
              {...bar.link}
              aria-label={`${bar.label}: ${format(totals[index] ?? 0)}`}
              // One stop for the whole chart; the arrow keys go on from there.
              tabIndex={index === (at ?? bars.length - 1) ? 0 : -1}
              onMouseEnter={() => setAt(index)}
              onFocus={() => setAt(index)}
              onBlur={() => setAt(null)}
              className="relative flex h-full min-w-0 flex-1 flex-col-reverse items-center outline-offset-0"
            >
              {bar.values.map((value, series) => (
                <span
                  key={names[series]}
                  className={`w-[78%] transition-opacity ${at === null || at === index ? "" : "opacity-45"}`}
                  style={{
                    height: `${(value / top) * 100}%`,
                    background: colors(names[series] ?? null),
                  }}
                />
              ))}
            </Link>
          ))}
        </div>
      </div>
      <div className="text-soft number flex justify-between text-[11px]">
        <span>{bars[0]?.label}</span>
        {bars.length > 2 ? <span className="max-sm:hidden">{middle?.label}</span> : null}
        {bars.length > 1 ? <span>{bars.at(-1)?.label}</span> : null}
      </div>
    </figure>
  )
}

function stepToNeighbour(event: KeyboardEvent<HTMLElement>): void {
  const from = document.activeElement
  const to =
    event.key === "ArrowRight"
      ? from?.nextElementSibling
      : event.key === "ArrowLeft"
        ? from?.previousElementSibling
        : null
  if (to instanceof HTMLAnchorElement) to.focus()
}

function Scale({ labels }: { labels: readonly string[] }): ReactNode {
  return (
    <ol
      className="number text-soft flex h-40 flex-col-reverse justify-between text-end text-[11px]"
      aria-hidden="true"
    >
      {labels.map((label, index) => (
        <li key={index} className="flex h-0 items-center justify-end">
          {label}
        </li>
      ))}
    </ol>
  )
}

function Grid({ steps, top }: { steps: readonly number[]; top: number }): ReactNode {
  return (
    <div aria-hidden="true" className="absolute inset-0">
      {steps.map((step) => (
        <span
          key={step}
          className={`absolute inset-x-0 border-t ${step === 0 ? "border-strong" : "border-line"}`}
          style={{ bottom: `${(step / top) * 100}%` }}
        />
      ))}
    </div>
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
