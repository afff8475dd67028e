import { expect, test } from "vitest"
import { firstChoice, monitoringQuery, referenceWords, referencesOf, withRange } from "./monitoring-query.ts"

const now = Date.UTC(2026, 4, 20, 10, 30)
const hour = 3_600_000

test("a range is whole bars up to the one that runs: hours for one day, days for more", () => {
  expect(monitoringQuery({ ...firstChoice, range: "1" }, now)).toEqual({
    range_start: String(Date.UTC(2026, 4, 19, 11)),
    range_end: String(Date.UTC(2026, 4, 20, 11)),
    bucket: "hour",
  })
  expect(monitoringQuery(firstChoice, now)).toEqual({
    range_start: String(Date.UTC(2026, 4, 14)),
    range_end: String(Date.UTC(2026, 4, 21)),
    bucket: "day",
  })
})

const labels = (range: "1" | "7" | "30") => referencesOf(range).map(({ label }) => label)

test("each length of a reference window is offered once, also after the range changes", () => {
  expect(labels("1")).toEqual(["Previous 24 hours", "Previous 7 days", "Previous 30 days", "Choose dates"])
  expect(labels("7")).toEqual(["Previous 7 days", "Previous 30 days", "Choose dates"])
  expect(withRange({ ...firstChoice, reference: "30" }, "30")).toMatchObject({
    range: "30",
    reference: "before",
  })
  expect(withRange({ ...firstChoice, reference: "30" }, "1")).toMatchObject({ range: "1", reference: "30" })
})

test("the reference window is said by its length where it ends at the range, and else by its days", () => {
  const day = 24 * hour
  const range = { start: 20 * day, end: 27 * day }
  const words = (start: number, end: number) =>
    referenceWords(
      { range, reference: { start: start * day, end: end * day } },
      (at) => `day ${Math.floor(at / day)}`,
    )
  expect(words(13, 20)).toBe("the 7 days before")
  expect(words(19, 20)).toBe("the 24 hours before")
  expect(words(1, 3)).toBe("day 1 to day 2")
})

test("the reference window ends where the range begins", () => {
  const asked = monitoringQuery({ ...firstChoice, reference: "30", version: "3" }, now)
  expect(asked).toMatchObject({ version: "3", reference_end: asked?.range_start })
  expect(Number(asked?.range_start) - Number(asked?.reference_start ?? 0)).toBe(30 * 24 * hour)
})

test("chosen dates are both in the window; until there are two in order, nothing is asked", () => {
  const dates = { ...firstChoice, reference: "dates", from: "2026-05-01", to: "2026-05-01" } as const
  const asked = monitoringQuery(dates, now)
  expect(Number(asked?.reference_end) - Number(asked?.reference_start ?? 0)).toBe(24 * hour)
  expect(monitoringQuery({ ...dates, to: "2026-04-30" }, now)).toBeNull()
  expect(monitoringQuery({ ...dates, from: "" }, now)).toBeNull()
})
