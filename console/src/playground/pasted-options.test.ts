import { expect, test } from "vitest"
import { pastedOptions } from "./pasted-options.ts"

const names = (text: string) => pastedOptions(text)?.map(({ value, description }) => [value, description])

test.each([
  ["one line is not a list", "delivery", undefined],
  ["one line with its end is not a list", "delivery\n", undefined],
  [
    "lines, whatever their ends",
    "a\r\nb\n\nc",
    [
      ["a", ""],
      ["b", ""],
      ["c", ""],
    ],
  ],
  [
    "bullets and numbers",
    "- a\n* b\n3. c\n4) d",
    [
      ["a", ""],
      ["b", ""],
      ["c", ""],
      ["d", ""],
    ],
  ],
  [
    "cells of a table",
    "a\tlate parcels\nb\tcharges",
    [
      ["a", "late parcels"],
      ["b", "charges"],
    ],
  ],
  [
    "a number that is part of the name",
    "3 days\n-5",
    [
      ["3 days", ""],
      ["-5", ""],
    ],
  ],
])("%s", (_, text, options) => {
  expect(names(text)).toEqual(options)
})
