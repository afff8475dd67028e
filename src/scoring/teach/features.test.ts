import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { featureKinds, featuresLater, featuresOf } from "./features.ts"
import { expandWeights, lexicalSpaceOf, projectTexts, sparseRow } from "./lexicon.ts"

/** How many features two texts share. */
function shared(one: string, other: string, kind: "word" | "character" | "field"): number {
  const known = featuresOf(other)[kind]
  return [...featuresOf(one)[kind].keys()].filter((feature) => known.has(feature)).length
}

describe("features of a text", () => {
  test("words count whatever their case and width, and pairs of neighbours too", () => {
    expect(shared("Gold tier", "GOLD Ｔier", "word")).toBe(3)
    expect(shared("gold tier", "tier gold", "word")).toBe(2)
  })

  test("characters serve scripts without spaces", () => {
    expect(shared("환불해주세요", "환불부탁드려요", "character")).toBeGreaterThan(0)
    expect(shared("返金してください", "返金をお願いします", "word")).toBe(0)
    expect(shared("返金してください", "返金をお願いします", "character")).toBeGreaterThan(0)
  })

  test("fields of JSON have their path as a name, lists have none, and pairs of fields are features", () => {
    const one = JSON.stringify({ customer: { tier: "gold" }, tags: ["a", "b"] })
    expect(featuresOf(one).field.size).toBe(6)
    expect(shared(one, JSON.stringify({ tags: ["b"], customer: { tier: "gold" } }), "field")).toBe(2)
    expect(shared(one, JSON.stringify({ tier: "gold" }), "field")).toBe(0)
  })

  test("lines of a form are fields too", () => {
    expect(shared("Tier: gold\nhello", "Name: Jo\nTier: gold", "field")).toBe(1)
  })

  test("any text gives features, and what is nested a million deep ends nothing", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const counts = featuresOf(text)
        for (const kind of featureKinds)
          for (const found of counts[kind].values()) expect(found).toBeGreaterThan(0)
      }),
    )
    expect(featuresOf("[".repeat(1_000_000)).field.size).toBe(0)
    expect(featuresOf("x ".repeat(1_000_000)).word.size).toBe(2)
  })
})

test("a text is read when its features are first asked for, and once", () => {
  const later = featuresLater("gold tier")
  expect(later()).toEqual(featuresOf("gold tier"))
  expect(later()).toBe(later())
})

test("a text counts up to its 8,000th character and no further", () => {
  const start = "x ".repeat(3_999)
  expect(shared(`${start}ab`, "ab", "word")).toBe(1)
  expect(shared(`${start}x ab`, "ab", "word")).toBe(0)
})

test("weights of directions are weights of features: the products of a text with both are the same", () => {
  const texts = ["gold tier late", "silver tier late", "gold tier early", "gold late", "tier early late gold"]
  const { space, rows } = lexicalSpaceOf(texts.map(featuresOf), featureKinds)
  const weights = Float64Array.from(texts, (_, at) => Math.sin(at + 1))
  const expanded = expandWeights(space, weights)
  const others = [...texts, "silver late", "nothing known"]
  const along = projectTexts(space, others.map(featuresOf))
  expect(
    [...along.subarray(0, rows.length)].every((value, at) => Math.abs(value - (rows[at] ?? 0)) < 1e-9),
  ).toBe(true)
  for (const [at, text] of others.entries()) {
    const { columns, values } = sparseRow(space.lexicon, featuresOf(text))
    const byFeatures = columns.reduce(
      (sum, column, index) => sum + (expanded[column] ?? 0) * (values[index] ?? 0),
      0,
    )
    const byDirections = weights.reduce(
      (sum, weight, index) => sum + weight * (along[at * texts.length + index] ?? 0),
      0,
    )
    expect(byFeatures).toBeCloseTo(byDirections, 6)
  }
})

test("a feature of one text alone is not kept", () => {
  const { space } = lexicalSpaceOf(["gold tier", "gold late"].map(featuresOf), featureKinds)
  expect(sparseRow(space.lexicon, featuresOf("tier")).columns).toHaveLength(0)
  expect(sparseRow(space.lexicon, featuresOf("gold")).columns.length).toBeGreaterThan(0)
})
