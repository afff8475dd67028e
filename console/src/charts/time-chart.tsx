/** Lines over time on uPlot; drag across it to zoom, point at it to read it. */
import { type ReactNode, useEffect, useRef } from "react"
import UPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { useDark } from "../theme.ts"
import { timeMarks } from "./time-marks.ts"

interface Line {
  readonly name: string
  readonly color: string
  readonly values: readonly number[]
}

const heightPx = 240
/** A drag shorter than this is a click. */
const zoomPixelsMin = 6

export function TimeChart({
  title,
  timesMs,
  lines,
  format,
  onZoom,
  onPoint,
}: {
  title: string
  timesMs: readonly number[]
  lines: readonly Line[]
  format: (value: number) => string
  onZoom: (startMs: number, endMs: number) => void
  /** The point in time that is pointed at, by its index; null for none. */
  onPoint: (index: number | null) => void
}): ReactNode {
  const place = useRef<HTMLDivElement>(null)
  const dark = useDark()
  const zoom = useRef(onZoom)
  const point = useRef(onPoint)
  useEffect(() => {
    zoom.current = onZoom
    point.current = onPoint
  })
  useEffect(() => {
    const element = place.current
    if (!element) return
    const style = getComputedStyle(document.documentElement)
    const plot = new UPlot(
      {
        ...options(element.clientWidth, lines, format, style),
        hooks: {
          setSelect: [zoomHook((start, end) => zoom.current(start, end))],
          setCursor: [({ cursor }) => point.current(cursor.idx ?? null)],
        },
      },
      [timesMs.map((time) => time / 1000), ...lines.map(({ values }) => [...values])],
      element,
    )
    const watcher = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: heightPx }))
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      plot.destroy()
    }
  }, [timesMs, lines, format, dark])
  return <div ref={place} role="img" aria-label={title} className="h-60 w-full overflow-hidden" />
}

function options(
  width: number,
  lines: readonly Line[],
  format: (value: number) => string,
  style: CSSStyleDeclaration,
): UPlot.Options {
  const ink = style.getPropertyValue("--color-soft")
  const grid = { stroke: style.getPropertyValue("--color-line"), width: 1 }
  const axis = { stroke: ink, grid, ticks: { show: false }, font: "11px system-ui, sans-serif" }
  return {
    width,
    height: heightPx,
    legend: { show: false },
    padding: [12, 20, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 30, values: (_plot, ticks) => timeMarks(ticks) },
      { ...axis, size: 52, values: (_plot, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...lines.map(({ name, color }, index) => ({
        label: name,
        stroke: color,
        width: 1.75,
        points: { show: false },
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
