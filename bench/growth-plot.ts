/** Draws how cost grows: charts with logarithmic axes beside one another, one line for each way, as SVG. */

export interface Chart {
  readonly title: string
  readonly xTitle: string
  readonly xs: readonly number[]
  /** Milliseconds for each x, by way. */
  readonly ways: Readonly<Record<string, readonly number[]>>
}

const WIDTH = 420
const HEIGHT = 340
const MARGIN = { left: 58, right: 16, top: 34, bottom: 76 } as const
const COLORS = ["#2563eb", "#dc2626", "#d97706", "#16a34a"] as const

export function drawCharts(charts: readonly Chart[]): string {
  const drawn = charts.map(
    (chart, index) => `<g transform="translate(${index * WIDTH} 0)">${drawChart(chart)}</g>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${charts.length * WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${drawn.join("\n")}
</svg>
`
}

function drawChart({ title, xTitle, xs, ways }: Chart): string {
  const x = logScale(xs, MARGIN.left, WIDTH - MARGIN.right)
  const y = logScale(Object.values(ways).flat(), HEIGHT - MARGIN.bottom, MARGIN.top)
  const floor = HEIGHT - MARGIN.bottom
  const xMarks = xs.map((value) => text(x.at(value), floor + 16, String(value), "middle"))
  const yMarks = y.powers.map(
    (value) =>
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y.at(value)}" y2="${y.at(value)}" stroke="#e5e7eb"/>` +
      text(MARGIN.left - 6, y.at(value) + 4, value >= 1000 ? `${value / 1000} s` : `${value} ms`, "end"),
  )
  const lines = Object.entries(ways).map(([name, values], index) => {
    const color = COLORS[index % COLORS.length] ?? "black"
    const points = values.map((value, at) => `${x.at(xs[at] ?? 1).toFixed(1)},${y.at(value).toFixed(1)}`)
    const legendX = MARGIN.left + (index % 2) * ((WIDTH - MARGIN.left) / 2)
    const legendY = floor + 50 + Math.floor(index / 2) * 16
    return (
      `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>` +
      `<rect x="${legendX}" y="${legendY - 9}" width="10" height="10" fill="${color}"/>` +
      text(legendX + 15, legendY, name, "start")
    )
  })
  return [
    text(MARGIN.left, 18, title, "start"),
    ...yMarks,
    ...xMarks,
    text((MARGIN.left + WIDTH - MARGIN.right) / 2, floor + 33, xTitle, "middle"),
    ...lines,
  ].join("\n")
}

interface Scale {
  at(value: number): number
  /** The powers of ten within it. */
  readonly powers: readonly number[]
}

function logScale(values: readonly number[], from: number, to: number): Scale {
  const least = Math.log10(Math.min(...values))
  const span = Math.max(Math.log10(Math.max(...values)) - least, 1e-9)
  const powers: number[] = []
  for (let power = Math.ceil(least); power <= least + span; power++) powers.push(10 ** power)
  return { at: (value) => from + ((Math.log10(value) - least) / span) * (to - from), powers }
}

function text(x: number, y: number, words: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${words}</text>`
}
