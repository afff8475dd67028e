import { expect, test } from "vitest"
import { readChoice } from "../answers.ts"
import { answerConfidence } from "./apply.ts"
import { type StagePair, blendLogs, blendMargins, blendObjective, fitBlend } from "./blend.ts"
import { seededRandom } from "./random.ts"
import { subtractLogSum } from "./logits.ts"

const pace = async (): Promise<void> => undefined

/** Two judges that see the label with noise of their own. */
function pairOf(rows: number, optionCount: number, signals: readonly [number, number]): StagePair {
  const random = seededRandom(11)
  const noise = (): number => 2 * (random() + random() + random() - 1.5)
  const labels = Int32Array.from({ length: rows }, () => Math.floor(random() * optionCount))
  const [first, later] = signals.map((signal) => {
    const logs = new Float64Array(rows * optionCount)
    for (const at of logs.keys())
      logs[at] = (at % optionCount === labels[Math.floor(at / optionCount)] ? signal : 0) + noise()
    for (let at = 0; at < logs.length; at += optionCount) subtractLogSum(logs.subarray(at, at + optionCount))
    return logs
  }) as [Float64Array, Float64Array]
  return { optionCount, labels, first, later }
}

test("two stages that know different things are blended, one that knows nothing new is not", async () => {
  const both = await fitBlend(pairOf(300, 3, [2, 2]), seededRandom(1), pace)
  expect(both.blend?.first).toBeGreaterThan(0.3)
  expect(both.blend?.later).toBeGreaterThan(0.3)
  const pair = pairOf(300, 3, [0, 2])
  const alone = await fitBlend(pair, seededRandom(1), pace)
  expect(alone).toEqual({ blend: null, logs: pair.later })
  expect(await fitBlend(pairOf(300, 3, [2, 2]), seededRandom(1), pace)).toEqual(both)
})

test("the slope of the objective is that of its differences", () => {
  const objective = blendObjective(pairOf(20, 4, [1, 2]))
  const gradient = new Float64Array(2)
  const at = Float64Array.of(0.4, 0.7)
  objective(at, gradient)
  for (const index of [0, 1]) {
    const step = 1e-6
    const [above, below] = [step, -step].map((change) =>
      objective(
        at.map((value, own) => (own === index ? value + change : value)),
        new Float64Array(2),
      ),
    ) as [number, number]
    expect(gradient[index]).toBeCloseTo((above - below) / (2 * step), 4)
  }
})

const logsOf = (margins: Float64Array): Float64Array =>
  Float64Array.from(readChoice(margins).probabilities, Math.log)

test("blended margins answer as the blended probabilities do, and all weight on the later stage changes nothing", () => {
  const [first, later] = [Float64Array.of(-1, 0.5, 2), Float64Array.of(1, 0.7, -2)]
  const asLater = blendMargins("choice", first, later, { first: 0, later: 1 })
  for (const [at, probability] of readChoice(asLater).probabilities.entries())
    expect(probability).toBeCloseTo(readChoice(later).probabilities[at] ?? 0, 10)
  const weights = { first: 0.6, later: 0.9 }
  const logs = blendLogs({ optionCount: 3, first: logsOf(first), later: logsOf(later) }, weights)
  const { probabilities } = readChoice(blendMargins("choice", first, later, weights))
  for (const [at, probability] of probabilities.entries())
    expect(probability).toBeCloseTo(Math.exp(logs[at] ?? 0), 10)
  expect(
    answerConfidence(
      "predicate",
      blendMargins("predicate", Float64Array.of(2), Float64Array.of(-4), { first: 1, later: 1 }),
    ),
  ).toBeCloseTo(1 / (1 + Math.exp(-2)))
})
