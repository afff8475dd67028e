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

/** Buckets are whole milliseconds, so there may be fewer than asked for; the last ends with the range. */
export function gridOf(startMs: number, endMs: number, buckets: number | undefined): Grid {
  const rangeMs = endMs - startMs
  const wanted = Math.min(Math.max(buckets ?? bucketsByDefault(rangeMs), 1), bucketsMax)
  const bucketMs = Math.ceil(rangeMs / wanted)
  return { startMs, endMs, bucketMs, count: Math.ceil(rangeMs / bucketMs) }
}

export function bucketsOf({ startMs, endMs, bucketMs, count }: Grid): { t0: number; t1: number }[] {
  return Array.from({ length: count }, (_, index) => ({
    t0: startMs + index * bucketMs,
    t1: Math.min(startMs + (index + 1) * bucketMs, endMs),
  }))
}
