import { expect, test } from "vitest"
import { type LabelledMargins, fitCalibration, isAtBounds } from "./calibration.ts"

const predicate = (margin: number, isYes: boolean): LabelledMargins => ({
  kind: "predicate",
  margins: [margin],
  right: isYes ? 0 : null,
})

test("labels that the margins tell apart are fitted by the most extreme values, and that is told", () => {
  const separable = [-2, -1, 1, 2].map((margin) => predicate(margin, margin > 0))
  expect(isAtBounds(fitCalibration(separable))).toBe(true)
  expect(isAtBounds(fitCalibration([predicate(-1, true), predicate(2, true)]))).toBe(true)
})

test("labels that contradict the margins now and then have a calibration between the bounds", () => {
  const noisy = [-2, -1, 1, 2].flatMap((margin) => [
    predicate(margin, margin > 0),
    predicate(margin, margin > 0),
    predicate(margin, margin < 0),
  ])
  const fitted = fitCalibration(noisy)
  expect(isAtBounds(fitted)).toBe(false)
  expect(fitted.temperature).toBeGreaterThan(1)
  expect(fitted.bias).toBeCloseTo(0, 3)
})
