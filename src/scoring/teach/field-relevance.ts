/** Which fields of the texts say something of the labels. */
import type { Problem } from "./problem.ts"

/** Bounds of what few rows may say of it. */
const RELEVANCE_MIN = 0.1
const RELEVANCE_MAX = 10

/**
 * By column of the fields: how much more the labels differ between the values of its name, or pair of names, than they would by chance (the
 * G statistic over its degrees of freedom, less one). What says nothing is held more strongly.
 */
export function fieldRelevance({ labels, optionCount, read, space }: Problem): number[] {
  const { size, numbers } = read.fields
  const byName = Map.groupBy(space.fields.names.keys(), (column) => space.fields.names[column] ?? 0)
  const relevance = Array.from({ length: size }, () => 1)
  const seen = new Set(labels).size
  for (const columns of byName.values()) {
    // The last line counts rows that have none of the values.
    const counts = new Float64Array((columns.length + 1) * optionCount)
    for (let row = 0; row < labels.length; row++) {
      const label = labels[row] ?? 0
      let line = 0
      while (line < columns.length && numbers[row * size + (columns[line] ?? 0)] === 0) line++
      counts[line * optionCount + label] = (counts[line * optionCount + label] ?? 0) + 1
    }
    const { statistic, lines } = gStatistic(counts, optionCount)
    const freedom = Math.max(1, (lines - 1) * (seen - 1))
    const own = Math.min(RELEVANCE_MAX, Math.max(RELEVANCE_MIN, statistic / freedom - 1))
    for (const column of columns) relevance[column] = own
  }
  return relevance
}

/** Of counts by line and option, and how many lines have any. */
function gStatistic(counts: Float64Array, width: number): { statistic: number; lines: number } {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const lineSums = Float64Array.from({ length: counts.length / width }, (_, line) =>
    counts.subarray(line * width, (line + 1) * width).reduce((sum, count) => sum + count, 0),
  )
  const optionSums = Float64Array.from({ length: width }, (_, option) =>
    lineSums.reduce((sum, _line, line) => sum + (counts[line * width + option] ?? 0), 0),
  )
  let statistic = 0
  for (const [at, count] of counts.entries())
    if (count > 0)
      statistic +=
        2 *
        count *
        Math.log((count * total) / ((lineSums[Math.floor(at / width)] ?? 1) * (optionSums[at % width] ?? 1)))
  return { statistic, lines: lineSums.filter((sum) => sum > 0).length }
}
