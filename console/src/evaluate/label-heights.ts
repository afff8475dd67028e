/** Heights for the names of points, each as near its point as the others allow. */
export function labelHeights(
  points: readonly number[],
  { apart, lowest }: { readonly apart: number; readonly lowest: number },
): number[] {
  const order = points.map((_, at) => at).toSorted((a, b) => (points[a] ?? 0) - (points[b] ?? 0) || a - b)
  const heights = [...points]
  let above = -Infinity
  for (const at of order) above = heights[at] = Math.max(heights[at] ?? 0, above + apart)
  // Those pushed past the bottom push the others up again.
  let below = lowest + apart
  for (const at of order.toReversed()) below = heights[at] = Math.min(heights[at] ?? 0, below - apart)
  return heights
}
