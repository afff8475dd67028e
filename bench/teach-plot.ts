/** Draws accuracy and calibration error against labels, one line for each set, as SVG. */

interface Point {
  readonly accuracy: number
  readonly calibrationError: number
}

export interface LearningLine {
  readonly set: string
  readonly zeroShot: Point
  readonly taught: Readonly<Record<number, Point>>
}

const WIDTH = 420
const HEIGHT = 360
const MARGIN = { left: 44, right: 16, top: 34, bottom: 46 } as const
const LEGEND_WIDTH = 170

export function drawLearning(lines: readonly LearningLine[], labelCounts: readonly number[]): string {
  const xs = [0, ...labelCounts]
  const charts = (["accuracy", "calibrationError"] as const).map((measure, index) => {
    const values = lines.map(({ zeroShot, taught }) =>
      xs.map((count) => (count === 0 ? zeroShot : taught[count])?.[measure] ?? 0),
    )
    const title = measure === "accuracy" ? "Accuracy by labels" : "Calibration error by labels"
    const max = measure === "accuracy" ? 1 : Math.max(0.1, ...values.flat())
    return `<g transform="translate(${index * WIDTH} 0)">${drawChart(title, xs, { values, max })}</g>`
  })
  const legend = lines.map(
    ({ set }, index) =>
      `<rect x="${2 * WIDTH}" y="${MARGIN.top + index * 17}" width="10" height="10" fill="${color(index)}"/>` +
      text(2 * WIDTH + 15, MARGIN.top + index * 17 + 9, set, "start"),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${2 * WIDTH + LEGEND_WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${[...charts, ...legend].join("\n")}
</svg>
`
}

function drawChart(
  title: string,
  xs: readonly number[],
  { values, max }: { values: readonly (readonly number[])[]; max: number },
): string {
  const floor = HEIGHT - MARGIN.bottom
  // The steps between numbers of labels are drawn alike: they grow.
  const x = (at: number): number =>
    MARGIN.left + (at / (xs.length - 1)) * (WIDTH - MARGIN.left - MARGIN.right)
  const y = (value: number): number => floor - (value / max) * (floor - MARGIN.top)
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => share * max)
  return [
    text(MARGIN.left, 18, title, "start"),
    ...marks.map(
      (mark) =>
        `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(mark).toFixed(1)}" y2="${y(mark).toFixed(1)}" stroke="#e5e7eb"/>` +
        text(MARGIN.left - 6, y(mark) + 4, mark.toFixed(2), "end"),
    ),
    ...xs.map((count, at) => text(x(at), floor + 16, String(count), "middle")),
    text((MARGIN.left + WIDTH - MARGIN.right) / 2, floor + 34, "labels", "middle"),
    ...values.map((line, index) => {
      const points = line.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
      return `<polyline points="${points.join(" ")}" fill="none" stroke="${color(index)}" stroke-width="2"/>`
    }),
  ].join("\n")
}

/** Hues as far apart as a golden angle puts them. */
const color = (index: number): string => `hsl(${Math.round((index * 137.5) % 360)} 70% 42%)`

const text = (x: number, y: number, words: string, anchor: "start" | "middle" | "end"): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${words}</text>`
