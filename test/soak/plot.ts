/** Draws samples as small plots under one another, one for each series, as SVG. */

const width = 900
const rowHeight = 90
const left = 220
const padding = 12

export function drawPlot(samples: readonly Readonly<Record<string, number>>[], durationMs: number): string {
  const names = Object.keys(samples[0] ?? {})
  const rows = names.map((name, row) =>
    drawRow(
      name,
      samples.map((one) => one[name] ?? 0),
      row * rowHeight,
    ),
  )
  const height = names.length * rowHeight + padding
  const caption = `${Math.round(durationMs / 60_000)} minutes from left to right`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + 20}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${rows.join("\n")}
<text x="${left}" y="${height + 10}">${caption}</text>
</svg>
`
}

function drawRow(name: string, series: readonly number[], top: number): string {
  const most = Math.max(...series, 1e-9)
  const plotHeight = rowHeight - 2 * padding
  const step = (width - left - padding) / Math.max(1, series.length - 1)
  const points = series.map((value, at) => {
    const x = left + at * step
    const y = top + padding + plotHeight * (1 - value / most)
    return `${x.toFixed(1)},${y.toFixed(1)}`
  })
  const floor = top + padding + plotHeight
  return `<text x="4" y="${top + rowHeight / 2}">${name}</text>
<text x="4" y="${top + rowHeight / 2 + 16}" fill="#666">0 to ${most.toFixed(1)}</text>
<line x1="${left}" x2="${width - padding}" y1="${floor}" y2="${floor}" stroke="#ccc"/>
<polyline points="${points.join(" ")}" fill="none" stroke="#2563eb" stroke-width="1.5"/>`
}
