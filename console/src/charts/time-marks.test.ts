import { expect, test } from "vitest"
import { timeMarks } from "./time-marks.ts"

/** Marks are in the time of the place where they are read. */
const at = (day: number, hour: number, minute = 0, second = 0): number =>
  new Date(2026, 10, day, hour, minute, second).getTime() / 1000

test.each([
  ["days", [at(14, 0), at(15, 0), at(16, 0)], ["Nov 14", "Nov 15", "Nov 16"]],
  ["hours, with the date at midnight", [at(14, 18), at(15, 0), at(15, 6)], ["18:00", "Nov 15", "06:00"]],
  ["seconds", [at(14, 9, 30, 15), at(14, 9, 30, 30)], ["09:30:15", "09:30:30"]],
  ["one mark", [at(14, 9, 30)], ["09:30"]],
  ["none", [], []],
])("%s", (_, ticks, marks) => {
  expect(timeMarks(ticks)).toEqual(marks)
})
