import { expect, test } from "vitest"
import { pastedRows } from "./pasted-rows.ts"

test.each([
  ["lines", "Late again, sadly.\n\nThank you!", [{ text: "Late again, sadly." }, { text: "Thank you!" }]],
  ["lines under a name", "message\nHello, you\nBye", [{ text: "Hello, you" }, { text: "Bye" }]],
  ["a table", 'text,team\n"Late, again",parcels\n', [{ text: "Late, again", team: "parcels" }]],
  ["semicolons", "text;team\nLate, again;parcels", [{ text: "Late, again", team: "parcels" }]],
  [
    "cells of a spreadsheet without a header",
    "It came late.\tparcels\nThanks.\tpraise",
    [
      { "column 1": "It came late.", "column 2": "parcels" },
      { "column 1": "Thanks.", "column 2": "praise" },
    ],
  ],
  ["JSON lines", '{"text":"a","ok":true}', [{ text: "a", ok: "true" }]],
  // The first line is a sentence and no header: its comma separates nothing.
  [
    "one sentence with a comma",
    "Hello, I am late.\nYes, me too.",
    [{ text: "Hello, I am late." }, { text: "Yes, me too." }],
  ],
  ["nothing", " \n", []],
])("%s are read as what they are", (_, text, rows) => {
  expect(pastedRows(text).rows).toEqual(rows)
})

test("a table with a row that is too long is refused with its place", () => {
  expect(() => pastedRows("text,team\na,b,c")).toThrow("Line 2, column")
})
