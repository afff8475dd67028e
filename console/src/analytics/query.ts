/** The view of the analytics page as a query of the API. */
import { type View, rangeOf } from "./view.ts"

export const refreshMs = 30_000

/** A preset moves with the clock, in steps, so that a query is not new at every paint. */
export function overviewQuery(view: View) {
  const step = Math.floor(Date.now() / refreshMs) * refreshMs
  const { startMs, endMs } = rangeOf(view, step + refreshMs)
  return {
    range_start: String(startMs),
    range_end: String(endMs),
    group_by: view.by,
    metric: view.metric,
    f: [...view.filters],
  }
}
