/** Draws accuracy against cost and against latency, a point for each member and each threshold of a cascade, as SVG. */

export interface CascadePoint {
  readonly name: string
  readonly accuracy: number
  /** Share of the requests that the large model was asked. */
  readonly escalated: number
  readonly usdPerThousand: number
  readonly medianMs: number
  readonly meanMs: number
  readonly p95Ms: number
}

const WIDTH = 440
const HEIGHT = 340
const MARGIN = { left: 52, right: 24, top: 34, bottom: 50 } as const

export function drawCascade(points: readonly CascadePoint[]): string {
  const charts = [
    {
      title: "Accuracy by cost",
      unit: "USD for 1000 questions",
      x: (one: CascadePoint) => one.usdPerThousand,
    },
    { title: "Accuracy by latency", unit: "mean milliseconds", x: (one: CascadePoint) => one.meanMs },
  ].map((chart, index) => `<g transform="translate(${index * WIDTH} 0)">${drawChart(points, chart)}</g>`)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${2 * WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${charts.join("\n")}
</svg>
`
}

function drawChart(
  points: readonly CascadePoint[],
  { title, unit, x: valueOf }: { title: string; unit: string; x: (one: CascadePoint) => number },
): string {
  const floor = HEIGHT - MARGIN.bottom
  const xMax = Math.max(...points.map(valueOf)) * 1.05
  const accuracies = points.map(({ accuracy }) => accuracy)
  const [low, high] = [Math.min(...accuracies) - 0.02, Math.max(...accuracies) + 0.02]
  const x = (value: number): number => MARGIN.left + (value / xMax) * (WIDTH - MARGIN.left - MARGIN.right)
  const y = (value: number): number => floor - ((value - low) / (high - low)) * (floor - MARGIN.top)
  const marks = [0, 0.25, 0.5, 0.75, 1]
  const line = points.map((one) => `${x(valueOf(one)).toFixed(1)},${y(one.accuracy).toFixed(1)}`).join(" ")
  return [
    text(MARGIN.left, 18, title, "start"),
    ...marks.map((share) => {
      const value = low + share * (high - low)
      const at = y(value).toFixed(1)
      return (
        `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${at}" y2="${at}" stroke="#e5e7eb"/>` +
        text(MARGIN.left - 6, y(value) + 4, value.toFixed(2), "end") +
        text(x(share * xMax), floor + 16, shown(share * xMax), "middle")
      )
    }),
    text((MARGIN.left + WIDTH - MARGIN.right) / 2, floor + 36, unit, "middle"),
    `<polyline points="${line}" fill="none" stroke="#94a3b8" stroke-dasharray="3 3"/>`,
    ...points.map((one) => {
      const isMember = !one.name.startsWith("cascade")
      const [cx, cy] = [x(valueOf(one)), y(one.accuracy)]
      const isRight = cx > WIDTH * 0.7
      return (
        `<circle cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="4" fill="${isMember ? "#b45309" : "#1d4ed8"}"/>` +
        text(
          cx + (isRight ? -7 : 7),
          cy + 14,
          one.name.replace(/^cascade-.*-/, ""),
          isRight ? "end" : "start",
        )
      )
    }),
  ].join("\n")
}

const shown = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toPrecision(2))

const text = (x: number, y: number, words: string, anchor: "start" | "middle" | "end"): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${words}</text>`
