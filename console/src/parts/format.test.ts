import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import {
  ago,
  asSentence,
  count,
  day,
  milliseconds,
  moment,
  month,
  percent,
  probability,
  smallDollars,
} from "./format.ts"

test.each([
  [0, "0.0%"],
  [0.000_4, "<0.1%"],
  [0.000_5, "0.1%"],
  [0.514, "51.4%"],
  [0.999_4, "99.9%"],
  [0.999_6, ">99.9%"],
  [1, "100.0%"],
])("the share %d reads %s", (share, text) => {
  expect(percent(share)).toBe(text)
})

test("a probability is never impossible and never certain", () => {
  expect([probability(0), probability(1)]).toEqual(["<0.1%", ">99.9%"])
  expect(probability(0.271)).toBe("27.1%")
})

test("a time has 24 hours and a zone", () => {
  expect(moment(new Date(2026, 10, 16, 0, 5).getTime())).toMatch(/^Nov 16, 2026, 00:05 \S+/)
  expect(moment(new Date(2026, 10, 16, 17, 5).getTime())).toMatch(/^Nov 16, 2026, 17:05 \S+/)
})

test("an invoice's month is that of UTC, whatever the zone", () => {
  expect(month("2026-10-01")).toBe("October 2026")
})

test("a calendar date is the same day in every zone", () => {
  const kept = process.env["TZ"]
  try {
    for (const place of ["Pacific/Honolulu", "Pacific/Kiritimati"]) {
      process.env["TZ"] = place
      expect([place, day("2026-11-16")]).toEqual([place, "Nov 16, 2026"])
    }
  } finally {
    if (kept === undefined) delete process.env["TZ"]
    else process.env["TZ"] = kept
  }
})

test("counts, costs, durations and distances read in short", () => {
  expect(count(12_345)).toBe("12,345")
  expect([smallDollars(0), smallDollars(0.000_012_3), smallDollars(1.5)]).toEqual([
    "$0",
    "$0.000012",
    "$1.50",
  ])
  expect([milliseconds(12.4), milliseconds(1500), milliseconds(90_000)]).toEqual([
    "12 ms",
    "1.5 s",
    "1.5 min",
  ])
  expect(ago(1_000_000, 1_000_000 + 7_200_000)).toBe("2 hours ago")
})

test("nothing else in the console formats numbers or times by itself", () => {
  const root = join(import.meta.dirname, "..")
  const strays = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !/(?:format|translate|messages)(?:\.test)?\.ts$/.test(file))
    .filter((file) =>
      /\bIntl\.|\.toLocale(?:Time|Date)?String\(/.test(readFileSync(join(root, file), "utf8")),
    )
  expect(strays).toEqual([])
})

test("a refusal before another sentence ends with one full stop", () => {
  expect(["The link was used", "Cancelled."].map(asSentence)).toEqual(["The link was used.", "Cancelled."])
})
