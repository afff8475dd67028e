/** Lines over time on uPlot; drag across it to zoom, point at it to read it. */
import { type ReactNode, useEffect, useRef } from "react"
import UPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { useDark } from "../theme.ts"
import { distinctLabels } from "./distinct-labels.ts"
import { lonePoints } from "./lone-points.ts"
import { roundSteps } from "./round-steps.ts"
import { timeMarks } from "./time-marks.ts"

interface Line {
  readonly name: string
  readonly color: string
  /** Null where there is nothing to measure: the line has a gap there. */
  readonly values: readonly (number | null)[]
}

const heightPx = 240
/** A drag shorter than this is a click. */
const zoomPixelsMin = 6

export function TimeChart({
  title,
  timesMs,
  lines,
  format,
  whole,
  onZoom,
  onPoint,
  onPick,
}: {
  title: string
  timesMs: readonly number[]
  lines: readonly Line[]
  format: (value: number) => string
  /** The values are counts. */
  whole: boolean
  onZoom: (startMs: number, endMs: number) => void
  /** The point in time that is pointed at, by its index; null for none. */
  onPoint: (index: number | null) => void
  /** The point in time that is clicked. */
  onPick?: (index: number) => void
}): ReactNode {
  const place = useRef<HTMLDivElement>(null)
  const dark = useDark()
  const zoom = useRef(onZoom)
  const point = useRef(onPoint)
  const pick = useRef(onPick)
  useEffect(() => {
    zoom.current = onZoom
    point.current = onPoint
    pick.current = onPick
  })
  useEffect(() => {
    const element = place.current
    if (!element) return
    const style = getComputedStyle(document.documentElement)
    const plot = new UPlot(
      {
        ...options(element.clientWidth, lines, { format, whole, style }),
        hooks: {
          setSelect: [zoomHook((start, end) => zoom.current(start, end))],
          setCursor: [({ cursor }) => point.current(cursor.idx ?? null)],
        },
      },
      [timesMs.map((time) => time / 1000), ...lines.map(({ values }) => [...values])],
      element,
    )
    plot.over.addEventListener("click", () => {
      const { idx } = plot.cursor
      if (idx !== undefined && idx !== null && plot.select.width < zoomPixelsMin) pick.current?.(idx)
    })
    const watcher = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: heightPx }))
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      plot.destroy()
    }
  }, [timesMs, lines, format, whole, dark])
  return <div ref={place} role="img" aria-label={title} className="h-60 w-full overflow-hidden" />
}

function options(
  width: number,
  lines: readonly Line[],
  { format, whole, style }: { format: (value: number) => string; whole: boolean; style: CSSStyleDeclaration },
): UPlot.Options {
  const ink = style.getPropertyValue("--color-soft")
  const grid = { stroke: style.getPropertyValue("--color-line"), width: 1 }
  const axis = {
    stroke: ink,
    grid,
    ticks: { show: false },
    font: `11px ${style.getPropertyValue("--font-sans")}`,
  }
  const steps = roundSteps(Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))), {
    whole,
  })
  return {
    width,
    height: heightPx,
    legend: { show: false },
    padding: [12, 20, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: { y: { range: () => [0, steps.at(-1) ?? 1] } },
    axes: [
      { ...axis, size: 30, values: (_plot, ticks) => timeMarks(ticks) },
      { ...axis, size: 56, splits: () => steps, values: (_plot, ticks) => distinctLabels(ticks, format) },
    ],
    series: [
      {},
      ...lines.map(({ name, color, values }, index) => ({
        label: name,
        stroke: color,
        width: 1.75,
        spanGaps: false,
        // A line needs two points; one between two gaps would not be seen.
        points: { show: true, size: 4, fill: color, filter: () => lonePoints(values) },
        ...(lines.length === 1 && index === 0 ? { fill: `${color}22` } : {}),
      })),
    ],
  }
}

function zoomHook(onZoom: (startMs: number, endMs: number) => void): (plot: UPlot) => void {
  return (plot) => {
    const { left, width } = plot.select
    if (width < zoomPixelsMin) return
    onZoom(Math.floor(plot.posToVal(left, "x") * 1000), Math.ceil(plot.posToVal(left + width, "x") * 1000))
  }
}
