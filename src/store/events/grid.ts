/** Cuts a time range into buckets. */
import { bucketsMax } from "../../contract/analytics.ts"

export interface Grid {
  readonly startMs: number
  readonly endMs: number
  readonly bucketMs: number
  readonly count: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A minute, an hour or less than a day each, for an hour, three days and three months. */
function bucketsByDefault(rangeMs: number): number {
  if (rangeMs <= hourMs) return 60
  return rangeMs <= 3 * dayMs ? 72 : 96
}

/**
 * As many buckets as asked for, of whole milliseconds; fewer only where the range has fewer milliseconds. The last ends with
 * the range: a little early, or a little late where buckets one millisecond longer would make fewer of them.
 */
export function gridOf(startMs: number, endMs: number, buckets: number | undefined): Grid {
  const rangeMs = endMs - startMs
  const wanted = Math.min(Math.max(buckets ?? bucketsByDefault(rangeMs), 1), bucketsMax)
  const roundedUpMs = Math.ceil(rangeMs / wanted)
  if (Math.ceil(rangeMs / roundedUpMs) === wanted)
    return { startMs, endMs, bucketMs: roundedUpMs, count: wanted }
  const bucketMs = Math.max(Math.floor(rangeMs / wanted), 1)
  return { startMs, endMs, bucketMs, count: Math.min(wanted, rangeMs) }
}

export function bucketsOf({ startMs, endMs, bucketMs, count }: Grid): { t0: number; t1: number }[] {
  return Array.from({ length: count }, (_, index) => ({
    t0: startMs + index * bucketMs,
    t1: index === count - 1 ? endMs : startMs + (index + 1) * bucketMs,
  }))
}
