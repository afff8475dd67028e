import { expect, test } from "vitest"
import { type CascadeProblem, type CascadeRequest, expectCascade, fitThresholds } from "./cascade.ts"
import { seededRandom } from "./random.ts"

const pace = async (): Promise<void> => undefined

/** A small model that is right as often as it is sure, and a large one that is nearly always right and costs ten times as much. */
function makeRequests(count: number, questions: number, seed = 3): CascadeRequest[] {
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, at) => ({
    split: at % 3 === 0 ? "held_out" : "train",
    evidenceCosts: [1, 10],
    answers: Array.from({ length: questions }, (_question, question) => {
      const sure = 0.5 + 0.5 * random()
      const hits = [random() < sure, random() < 0.99]
      return { question, confidences: [sure, 0.9], hits, costs: [0.1, 1] }
    }),
  }))
}

const problemOf = (requests: CascadeRequest[], targets: (number | null)[]): CascadeProblem => ({
  stageCount: 2,
  questions: targets.map((target) => ({ target, thresholds: [0.8] })),
  requests,
})

const trained = (problem: CascadeProblem, thresholds: readonly (readonly number[])[]) =>
  expectCascade(
    { ...problem, requests: problem.requests.filter(({ split }) => split === "train") },
    thresholds,
  )

test("the target is reached on the training rows, and no other threshold reaches it at less cost", async () => {
  const problem = problemOf(makeRequests(600, 1), [0.9])
  const [found = []] = await fitThresholds(problem, pace)
  const chosen = trained(problem, [found])
  expect(chosen.accuracy.value).toBeGreaterThanOrEqual(0.9)
  const cheaper = Array.from({ length: 101 }, (_, at) => at / 100).filter((threshold) => {
    const other = trained(problem, [[threshold]])
    // Between two quantiles there may be a better one: a thirtieth of the rows.
    return other.accuracy.value >= chosen.accuracy.value && other.cost < chosen.cost - 11 / 30
  })
  expect(cheaper).toEqual([])
  const heldOut = expectCascade(problem, [found])
  expect(heldOut).toMatchObject({ measuredOn: "held_out", requests: 200 })
  expect(heldOut.accuracy.low).toBeLessThan(heldOut.accuracy.value)
  expect(heldOut.asked[0]).toBe(1)
  expect(heldOut.asked[1]).toBeGreaterThan(0.1)
  expect(heldOut.asked[1]).toBeLessThan(0.9)
})

test("a higher target costs more, one that nothing reaches gets the most accurate, and no target keeps what was in force", async () => {
  const requests = makeRequests(600, 1)
  const costs = await Promise.all(
    [0.8, 0.9, 0.97].map(async (target) => {
      const problem = problemOf(requests, [target])
      return trained(problem, await fitThresholds(problem, pace)).cost
    }),
  )
  expect(costs).toEqual(costs.toSorted((a, b) => a - b))
  expect(new Set(costs).size).toBe(3)
  const [most = []] = await fitThresholds(problemOf(requests, [0.9999]), pace)
  const best = trained(problemOf(requests, [null]), [most]).accuracy.value
  expect(best).toBeGreaterThanOrEqual(trained(problemOf(requests, [null]), [[1]]).accuracy.value)
  expect(await fitThresholds(problemOf(requests, [null]), pace)).toEqual([[0.8]])
})

test("questions of one request share what its evidence costs", async () => {
  // Twins: where one is sent on, the other can be for a tenth of the price.
  const requests = makeRequests(300, 1).map((request) => ({
    ...request,
    answers: [0, 1].flatMap((question) => request.answers.map((answer) => ({ ...answer, question }))),
  }))
  const both = problemOf(requests, [0.9, 0.9])
  const found = await fitThresholds(both, pace)
  expect(found[0]).toEqual(found[1])
  const shared = trained(both, found)
  const alone = trained(
    problemOf(
      requests.map((one) => ({ ...one, answers: one.answers.slice(0, 1) })),
      [0.9],
    ),
    found,
  )
  expect(shared.asked).toEqual(alone.asked)
  expect(shared.cost).toBeLessThan(alone.cost * 1.2)
})

test("the same rows give the same thresholds, of three stages too", async () => {
  const random = seededRandom(5)
  const requests = makeRequests(300, 3).map((request) => ({
    ...request,
    evidenceCosts: [1, 5, 50],
    answers: request.answers.map((answer) => ({
      ...answer,
      confidences: [...answer.confidences.slice(0, 1), 0.5 + 0.5 * random(), 1],
      hits: [answer.hits[0] === true, random() < 0.8, true],
      costs: [0, 1, 2],
    })),
  }))
  const problem = { ...problemOf(requests, [0.9, 0.95, null]), stageCount: 3 }
  const threeStages = {
    ...problem,
    questions: problem.questions.map((one) => ({ ...one, thresholds: [0.8, 0.8] })),
  }
  const found = await fitThresholds(threeStages, pace)
  expect(found.map(({ length }) => length)).toEqual([2, 2, 2])
  expect(await fitThresholds(threeStages, pace)).toEqual(found)
  const { questions } = trained(threeStages, found)
  expect(questions[0]?.accuracy.value).toBeGreaterThanOrEqual(0.9)
  expect(questions[1]?.accuracy.value).toBeGreaterThanOrEqual(0.95)
})
