/** Where a series has nothing to measure: a latency of no requests is not 0 ms, and neither is its error rate 0%. */
import type { GroupedTimeseriesResponse, Metric } from "../../../src/contract/analytics.ts"

type Series = GroupedTimeseriesResponse["series"]

/** Measures of requests, which are nothing where there were none; counts and sums are 0 there. */
const perRequest: ReadonlySet<Metric> = new Set(["p50_latency", "p95_latency", "error_rate"])

export const hasGaps = (metric: Metric): boolean => perRequest.has(metric)

/** `requests` are the counts of the same buckets, as far as they are known. */
export function withGaps(series: Series, metric: Metric, requests: Series): (number | null)[][] {
  if (!hasGaps(metric)) return series.map(({ values }) => [...values])
  return series.map(({ key, values }) => {
    const counts = requests.find((one) => one.key === key && key !== null)?.values
    return values.map((value, index) => {
      if (counts) return counts[index] === 0 ? null : value
      // A group that is not among the known ones: only a latency says by itself that it is none.
      const any = requests.some((one) => one.values[index] !== 0)
      return value === 0 && (metric !== "error_rate" || !any) ? null : value
    })
  })
}
