import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Branch, promptText } from "../../engine/branch.ts"
import { readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import { type Question, expandQuestion, coherentMargins } from "./classification.ts"

type Option = string | boolean | readonly [string, string]

const stem = { name: null, path: "q", instructions: "Is it late?" } as const
const choice = (...options: Option[]): Question => ({
  ...stem,
  type: "choice",
  options: options.map((option) =>
    typeof option === "object"
      ? { value: option[0], description: option[1] }
      : { value: option, description: "" },
  ),
})
const score = (...labels: string[]): Question => ({
  ...stem,
  type: "score",
  levels: labels.map((label) => ({ label, description: "" })),
})
const predicate: Question = { ...stem, type: "predicate", yesMeans: "", noMeans: "" }

/** A model whose margin depends on every word that it is asked. */
function margin(branch: Branch): number {
  let hash = 7
  for (const character of promptText(branch)) hash = (hash * 31 + character.charCodeAt(0)) % 1009
  return hash / 100 - 5
}
const ask = (question: Question): Float64Array => {
  const branches = expandQuestion(question)
  return coherentMargins(branches, Float64Array.from(branches, margin))
}
const chosen = (...options: Option[]): readonly number[] => readChoice(ask(choice(...options))).probabilities

describe("a choice between yes and no is the predicate", () => {
  const yes = readPredicate(ask(predicate)[0] ?? Number.NaN)

  test.each<[Option, Option]>([
    ["yes", "no"],
    ["Yes", "NO "],
    [true, false],
    ["true", "False"],
    [
      ["yes", "Yes"],
      ["no", "no"],
    ],
    [["true", "yes"], "no"],
  ])("%j and %j, in either order", (one, other) => {
    expect(chosen(one, other)[0]).toBeCloseTo(yes, 12)
    expect(chosen(other, one)[1]).toBeCloseTo(yes, 12)
  })

  test("not where a description says more, or there is a third answer", () => {
    expect(expandQuestion(choice(["yes", "the parcel is late"], "no"))[0]?.kind).toBe("choice")
    expect(expandQuestion(choice("yes", "no", "unknown"))[0]?.kind).toBe("choice")
  })

  test("a margin that is no number stays none", () => {
    const branches = expandQuestion(choice("yes", "no", "Yes"))
    expect(
      coherentMargins(branches, Float64Array.of(Number.NaN, Number.NaN, Number.POSITIVE_INFINITY)),
    ).toEqual(Float64Array.of(Number.NaN, Number.NaN, Number.POSITIVE_INFINITY))
  })
})

describe("options with one meaning", () => {
  test("share the probability that it has alone, and leave the others theirs", () => {
    const [refund = 0, other = 0] = chosen("refund", "exchange")
    for (const twice of ["refund ", "Refund", ["refund", "Refund"] as const]) {
      const [first, second, rest] = chosen("refund", twice, "exchange")
      expect(first).toBe(second)
      // Which wording is asked is decided by the texts, not by their order.
      if (twice === "Refund") continue
      expect(first).toBeCloseTo(refund / 2, 12)
      expect(rest).toBeCloseTo(other, 12)
    }
  })

  test("are not those with different descriptions", () => {
    const [a, b] = chosen(["other", "praise"], ["other", "complaints"])
    expect(a).not.toBe(b)
  })
})

const word = fc.stringMatching(/^[a-zA-Z0-9 ]{1,6}$/)

test("a choice answers the same whatever the order of its options", () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 2, maxLength: 6 }), (options) => {
      expect(chosen(...options.toReversed())).toEqual(chosen(...options).toReversed())
    }),
  )
})

test("levels in reverse give the same probabilities in reverse", () => {
  const levels = fc.uniqueArray(fc.oneof(word, fc.integer({ min: -9, max: 99 }).map(String)), {
    minLength: 2,
    maxLength: 10,
    selector: (label) => label.toLowerCase().trim().replace(/\s+/gu, " "),
  })
  fc.assert(
    fc.property(levels, (labels) => {
      const forward = readScore(ask(score(...labels))).probabilities
      expect(readScore(ask(score(...labels.toReversed()))).probabilities).toEqual(forward.toReversed())
    }),
  )
})

test.each([
  [
    ["low", "middle", "high"],
    [0, 1, 2],
  ],
  [
    ["high", "middle", "low"],
    [2, 1, 0],
  ],
  [
    ["10", "5", "1"],
    [2, 1, 0],
  ],
  [
    ["not at all", "somewhat", "fully"],
    [0, 1, 2],
  ],
  [
    ["below 10", "10 to 20", "above 20"],
    [0, 1, 2],
  ],
])("the levels %j are numbered %j", (labels, numbers) => {
  const branches = expandQuestion(score(...labels))
  expect(branches.map((branch) => (branch.kind === "score" ? branch.level : null))).toEqual(numbers)
})
