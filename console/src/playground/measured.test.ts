import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { measuresOf, shareSentence, taughtWorth, worthOf } from "./measured.ts"

const base = measuresOf({
  description: "The embedded decision model: an encoder of 110M parameters that answers",
})

test.each([
  [0.5, "Half of the"],
  [0.62, "About 6 in 10"],
  [0.87, "About 9 in 10"],
  [0.93, "About 19 in 20"],
  // What was measured bounds what may be said.
  [0.9999, "About 19 in 20"],
  [0.3, "Fewer than half of the"],
])("%d sure is %j", (confidence, words) => {
  expect(shareSentence(confidence, 0.031)).toBe(`${words} answers as sure as this are right.`)
})

test("the sentence names what was measured, and other models have none", () => {
  expect(base && worthOf(base, "choice", 0.9)).toBe(
    "About 9 in 10 answers as sure as this are right. Stated and true shares were 6 points apart on 683 questions kept back from training, 9 points on public ones.",
  )
  expect(measuresOf({ description: "A model of somebody" })).toBeNull()
  expect(measuresOf(undefined)).toBeNull()
})

test("the catalog describes the included models by what their measures are found by", () => {
  const catalog = readFileSync(
    join(import.meta.dirname, "..", "..", "..", "src", "main", "catalog.ts"),
    "utf8",
  )
  const descriptions = [...catalog.matchAll(/description:\s+"([^"]+decision model[^"]+)"/g)].map(
    ([, text = ""]) => text,
  )
  expect(descriptions.map((description) => measuresOf({ description })?.weights)).toEqual([
    "110M parameters",
    "33M parameters",
    // Of the one for many languages too few public rows were read to say it.
    undefined,
  ])
})

const point = (threshold: number, rows: number, wrong: number) => ({
  threshold,
  rows,
  risk: wrong / rows,
  risk_high: 1,
  coverage: rows / 40,
})

describe("a taught answer", () => {
  const curve = [point(0.95, 10, 0), point(0.8, 20, 2), point(0.75, 22, 3), point(0.5, 40, 10)]

  test("is worth what rows about as sure were", () => {
    expect(taughtWorth(curve, 0.8)).toBe(
      "Of 12 labelled rows answered about as surely, none learned from, 9 were right.",
    )
  })
  test("says nothing where too few were", () => {
    expect(taughtWorth(curve, 0.2)).toBeNull()
    expect(taughtWorth([], 0.9)).toBeNull()
  })
})
