/** How many refusals of a provider are put on record: anyone can cause them, so a flood must not fill the audit log. */
import type { Clock } from "../../base/clock.ts"

const perMinuteMax = 60
const windowMs = 60_000
const countedMax = 10_000

interface Window {
  readonly startMs: number
  taken: number
  suppressed: number
}

export function createRefusalLimit(clock: Clock): {
  /** Null when this one is not recorded; otherwise how many were not since the last that was. */
  take(providerId: string): { readonly suppressed: number } | null
} {
  const windows = new Map<string, Window>()
  return {
    take(providerId) {
      const nowMs = clock.monotonicMs()
      const last = windows.get(providerId)
      if (last && nowMs - last.startMs < windowMs) {
        if (last.taken >= perMinuteMax) {
          last.suppressed += 1
          return null
        }
        last.taken += 1
        return { suppressed: 0 }
      }
      windows.delete(providerId)
      if (windows.size >= countedMax) windows.delete(windows.keys().next().value ?? "")
      windows.set(providerId, { startMs: nowMs, taken: 1, suppressed: 0 })
      return { suppressed: last?.suppressed ?? 0 }
    },
  }
}
