import { expect, test } from "vitest"
import { normalise } from "../answers.ts"
import { seededRandom } from "./random.ts"
import { type RuledRow, addVotes, votesOf, weighRules, weightsObjective } from "./rules.ts"

const noPause = async (): Promise<void> => undefined
/** Three levels; the rule speaks for the upper two. */
const atLeastSecond = { speaksFor: [false, true, true], weight: 2 }

const rowOf = (at: number, label: number, met: boolean): RuledRow => ({
  hash: String(at).padStart(4, "0"),
  split: "train",
  margins: [0, 0, 0],
  text: "",
  vector: null,
  label,
  met: [met],
})

test("a vote multiplies the odds of what it speaks for", () => {
  const before = normalise([1, 0, -1])
  const votes = votesOf([atLeastSecond], [Math.log(3)], [true])
  const after = normalise(addVotes("score", [1, 0, -1], votes))
  for (const level of [1, 2])
    expect((after[level] ?? 0) / (after[0] ?? 1)).toBeCloseTo(
      (3 * (before[level] ?? 0)) / (before[0] ?? 1),
      9,
    )
  expect([...addVotes("predicate", [0.5], [2, 0])]).toEqual([2.5])
  expect([...addVotes("predicate", [0.5], [0, 2])]).toEqual([-1.5])
})

test("a rule that is not met votes for nothing", () => {
  expect([...votesOf([atLeastSecond], [2], [false])]).toEqual([0, 0, 0])
})

const rowsOf = (right: number, wrong: number): RuledRow[] =>
  Array.from({ length: right + wrong }, (_, at) => rowOf(at, at < right ? 2 : 0, true))

const weighed = async (right: number, wrong: number) =>
  (await weighRules("score", [atLeastSecond], rowsOf(right, wrong), noPause)).rules[0]

test("labels that agree strengthen a rule, labels that contradict take it back", async () => {
  expect(await weighed(30, 0)).toMatchObject({ met: 30, right: 30 })
  expect((await weighed(30, 0))?.weight).toBeGreaterThan(2)
  expect((await weighed(0, 30))?.weight).toBeLessThan(-1)
  expect((await weighed(0, 1))?.weight).toBeGreaterThan(0)
})

const voteOf = (margins: ArrayLike<number> | undefined): number =>
  normalise(Array.from(margins ?? []))[2] ?? 0

test("the weight that votes for a row has not seen its label", async () => {
  const rows = Array.from({ length: 10 }, (_, at) => rowOf(at, 2, true))
  const [before] = (await weighRules("score", [atLeastSecond], rows, noPause)).rows
  const flipped = rows.map((row, at) => (at === 0 ? { ...row, label: 0 } : row))
  const after = (await weighRules("score", [atLeastSecond], flipped, noPause)).rows.find(
    ({ hash }) => hash === "0000",
  )
  // Its own fold may differ, but its own label does not lower its vote as it lowers that of others.
  const others = (await weighRules("score", [atLeastSecond], flipped, noPause)).rows.filter(
    ({ label }) => label === 2,
  )
  expect(voteOf(after?.margins)).toBeGreaterThan(Math.min(...others.map(({ margins }) => voteOf(margins))))
  expect(before).not.toHaveProperty("met")
})

test("the gradient is that of the value", () => {
  const random = seededRandom(3)
  const rows = Array.from({ length: 12 }, (_, at) => ({
    ...rowOf(at, at % 3, false),
    margins: [random(), random(), random()],
    met: [random() < 0.5, random() < 0.5],
  }))
  const rules = [atLeastSecond, { speaksFor: [true, false, false], weight: 1 }]
  const objective = weightsObjective("score", rules, rows)
  const at = Float64Array.of(0.7, -0.4)
  const gradient = new Float64Array(2)
  objective(at, gradient)
  for (const index of [0, 1]) {
    const [up, down] = [1e-5, -1e-5].map((step) =>
      objective(
        at.map((value, own) => value + (own === index ? step : 0)),
        new Float64Array(2),
      ),
    )
    expect(gradient[index]).toBeCloseTo(((up ?? 0) - (down ?? 0)) / 2e-5, 5)
  }
})
