import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type LabelledMargins, fitCalibration, meanLoss } from "./fit-calibration.ts"
import { calibrateMargins, uncalibrated } from "./calibration.ts"
import { type Judged, answerOf, evaluate, evaluateByLanguage } from "./evaluation.ts"
import { sigmoid } from "./answers.ts"

const yesNo = (yes: number, gold: "yes" | "no"): Judged => ({
  classes: ["yes", "no"],
  probabilities: [yes, 1 - yes],
  gold,
})

const inLanguage = (language: string | null, yes: number): Judged => ({ ...yesNo(yes, "yes"), language })

test("rows in several languages are measured by language too, the most frequent first", () => {
  const rows = [inLanguage("de", 0.9), inLanguage("en", 0.1), inLanguage("de", 0.2), inLanguage(null, 0.8)]
  const found = evaluateByLanguage(rows).map(({ language, evaluation }) => [
    language,
    evaluation.count,
    evaluation.accuracy,
  ])
  expect(found).toEqual([
    ["de", 2, 0.5],
    ["en", 1, 0],
    ["unknown", 1, 1],
  ])
  expect(evaluateByLanguage(rows.filter(({ language }) => language === "de"))).toEqual([])
})

/** Labels drawn by a true calibration, without randomness: each margin repeated in the right proportion. */
const labelledBy = (temperature: number, bias: number): LabelledMargins[] =>
  [-6, -4, -2, -1, 0, 1, 2, 4, 6].flatMap((margin) => {
    const yes = Math.round(200 * sigmoid(margin / temperature + bias))
    const one = (right: number | null): LabelledMargins => ({ kind: "predicate", margins: [margin], right })
    return [
      ...Array.from({ length: yes }, () => one(0)),
      ...Array.from({ length: 200 - yes }, () => one(null)),
    ]
  })

describe("evaluation", () => {
  test("a worked example, by hand", () => {
    const found = evaluate([yesNo(0.9, "yes"), yesNo(0.8, "no"), yesNo(0.3, "no"), yesNo(0.6, "yes")])
    expect(found.accuracy).toBe(0.75)
    expect(found.majority).toBe(0.5)
    // yes: 2 hits, 2 gold, 3 answered -> 4/5; no: 1 hit, 2 gold, 1 answered -> 2/3.
    expect(found.macroF1).toBeCloseTo((4 / 5 + 2 / 3) / 2, 12)
    expect(found.brier).toBeCloseTo((2 * (0.01 + 0.64 + 0.09 + 0.16)) / 4, 12)
    // Bins: 0.9 right; 0.8 wrong; 0.7 right; 0.6 right.
    expect(found.calibrationError).toBeCloseTo((0.1 + 0.8 + 0.3 + 0.4) / 4, 12)
    expect(found.confusion.get("no")).toEqual(
      new Map([
        ["yes", 1],
        ["no", 1],
      ]),
    )
  })

  test("nothing judged gives zeros, not NaN", () => {
    expect(evaluate([])).toMatchObject({
      count: 0,
      accuracy: 0,
      majority: 0,
      macroF1: 0,
      brier: 0,
      calibrationError: 0,
    })
  })

  test("ties go to the earlier class", () => {
    expect(answerOf({ classes: ["a", "b"], probabilities: [0.5, 0.5], gold: "b" })).toBe("a")
  })

  test("every measure stays within its bounds", () => {
    const one = fc
      .double({ min: 0, max: 1, noNaN: true })
      .chain((p) => fc.constantFrom("yes" as const, "no" as const).map((gold) => yesNo(p, gold)))
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 50 }), (judged) => {
        const { accuracy, macroF1, brier, calibrationError, reliability } = evaluate(judged)
        for (const measure of [accuracy, macroF1, calibrationError])
          expect(measure >= 0 && measure <= 1).toBe(true)
        expect(brier >= 0 && brier <= 2).toBe(true)
        expect(reliability.reduce((sum, bin) => sum + bin.count, 0)).toBe(judged.length)
      }),
    )
  })
})

describe("calibration", () => {
  test.each([
    [1, 0],
    [2.5, 0],
    [0.5, -1],
    [3, 1.5],
  ])("temperature %d and bias %d are found again from their labels", (temperature, bias) => {
    const fitted = fitCalibration(labelledBy(temperature, bias))
    expect(fitted.temperature).toBeCloseTo(temperature, 1)
    expect(fitted.bias).toBeCloseTo(bias, 1)
  })

  test("a fit never makes the labels less likely", () => {
    const question = fc
      .array(fc.double({ min: -20, max: 20, noNaN: true }), { minLength: 2, maxLength: 6 })
      .chain((margins) =>
        fc.nat(margins.length - 1).map((right): LabelledMargins => ({ kind: "options", margins, right })),
      )
    fc.assert(
      fc.property(fc.array(question, { minLength: 1, maxLength: 20 }), (labelled) => {
        expect(meanLoss(labelled, fitCalibration(labelled))).toBeLessThanOrEqual(
          meanLoss(labelled, uncalibrated) + 1e-12,
        )
      }),
      { numRuns: 25 },
    )
  })

  test("a positive temperature alone keeps the order of margins", () => {
    expect([...calibrateMargins(Float64Array.of(3, -1, 2), { temperature: 2, bias: 1 })]).toEqual([
      2.5, 0.5, 2,
    ])
  })
})
