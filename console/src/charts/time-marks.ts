/** What stands under a time axis: days by their date, hours by the clock, and at midnight the date. */
const date = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" })
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })
const exact = new Intl.DateTimeFormat("en", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
})
const dayS = 86_400
const minuteS = 60

/** Seconds since 1970, evenly apart. */
export function timeMarks(ticks: readonly number[]): string[] {
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0)
  return ticks.map((tick) => {
    const at = new Date(tick * 1000)
    const midnight = at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0
    if (step >= dayS || midnight) return date.format(at)
    return (step > 0 && step < minuteS ? exact : clock).format(at)
  })
}
