/** What stands under a time axis: days by their date, hours by the clock, and at midnight the date. */
import { onAxis } from "../parts/format.ts"
import { distinctLabels } from "./distinct-labels.ts"

const dayS = 86_400
const minuteS = 60

/** Seconds since 1970, evenly apart. */
export function timeMarks(ticks: readonly number[]): string[] {
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0)
  return distinctLabels(ticks, (tick) => {
    const at = new Date(tick * 1000)
    const midnight = at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0
    if (step >= dayS || midnight) return onAxis.day(at)
    return step > 0 && step < minuteS ? onAxis.seconds(at) : onAxis.clock(at)
  })
}
