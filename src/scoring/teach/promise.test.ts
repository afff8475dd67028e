import { expect, test } from "vitest"
import { binomialAtMost, shareAtMost } from "./figures.ts"
import { type JudgedAnswer, choosePromise, riskCoverage } from "./promise.ts"
import { seededRandom } from "./random.ts"

/** Confidences fall; the rows at these places, from the most confident, are wrong. */
const answers = (count: number, ...wrong: number[]): JudgedAnswer[] =>
  Array.from({ length: count }, (_, at) => ({ confidence: 1 - at / 10_000, isRight: !wrong.includes(at) }))

test("bounds are those of the tables", () => {
  expect(binomialAtMost(2, 10, 0.3)).toBeCloseTo(0.3828, 4)
  expect(binomialAtMost(10, 10, 0.3)).toBe(1)
  expect(shareAtMost(0, 59, 0.95)).toBeCloseTo(0.04951, 5)
  expect(shareAtMost(3, 50, 0.95)).toBeCloseTo(0.14784, 5)
  expect(shareAtMost(5, 5, 0.95)).toBe(1)
})

test("59 right rows can promise 0.95, 58 cannot, and the sentence says how many are needed", () => {
  expect(choosePromise(answers(59), 0.95)).toMatchObject({ isPromised: true, coverage: 1, accuracy: 1 })
  const refused = choosePromise(answers(58), 0.95)
  expect(refused).toMatchObject({ isPromised: false, threshold: null, coverage: 0, rowsNeeded: 59 })
  expect(refused.sentence).toBe("Cannot promise 95% with 58 rows: at least 59 are needed, all of them right")
})

test("the threshold is the loosest before the first refusal", () => {
  // 59 rows may have no mistake, 93 rows one: the second mistake at place 80 ends the sequence.
  expect(choosePromise(answers(200, 70, 80), 0.95)).toMatchObject({
    threshold: 1 - 58 / 10_000,
    coverage: 59 / 200,
  })
  expect(choosePromise(answers(200, 70), 0.95)).toMatchObject({ threshold: 1 - 199 / 10_000, coverage: 1 })
})

test("a mistake among the most confident rows ends the sequence at its start", () => {
  const { isPromised, sentence } = choosePromise(answers(200, 3), 0.95)
  expect(isPromised).toBe(false)
  expect(sentence).toContain("among the 59 most confident rows")
})

test("rows that are equally confident are answered together", () => {
  const tied = answers(70).map(({ isRight }, at) => ({ isRight: isRight && at !== 69, confidence: 0.99 }))
  expect(choosePromise(tied, 0.95).isPromised).toBe(false)
})

test("at most one of twenty promises is broken when the answers are as bad as a promise allows", () => {
  const random = seededRandom(3)
  const rounds = 1000
  let broken = 0
  for (let round = 0; round < rounds; round++) {
    // Wrong with probability 0.1 whatever the confidence: any promise of 0.9 would be just false at 0.1001.
    const drawn = Array.from({ length: 150 }, () => ({
      confidence: 0.95 + 0.05 * random(),
      isRight: random() >= 0.1001,
    }))
    if (choosePromise(drawn, 0.9).isPromised) broken++
  }
  expect(broken / rounds).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / rounds))
})

test("answers that call themselves unsure promise nothing, even if they happen to be right", () => {
  const unsure = answers(100).map(({ isRight }) => ({ isRight, confidence: 0.96 }))
  expect(choosePromise(unsure, 0.95).isPromised).toBe(false)
  expect(choosePromise(unsure, 0.9).isPromised).toBe(true)
})

test("risk is told at every coverage, with a bound, in at most so many points", () => {
  const points = riskCoverage(answers(4, 2))
  expect(points.map(({ coverage, risk }) => [coverage, risk])).toEqual([
    [0.25, 0],
    [0.5, 0],
    [0.75, 1 / 3],
    [1, 0.25],
  ])
  expect(points.every(({ risk, riskHigh }) => riskHigh > risk)).toBe(true)
  const many = riskCoverage(answers(333), 100)
  expect(many.length).toBeLessThanOrEqual(100)
  expect(many.at(-1)?.coverage).toBe(1)
  expect(riskCoverage([])).toEqual([])
})

test.each([0, 1, Number.NaN])("a target of %s is refused", (target) => {
  expect(() => choosePromise(answers(9), target)).toThrow(RangeError)
})
