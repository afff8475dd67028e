/**
 * What one would try without Umpire: words and pairs of neighbours, weighed by TF-IDF, and logistic regression on them, its penalty chosen
 * by five-fold cross-validation (accuracy, then log loss). Features are kept as their products with the labelled texts, which is the same regression.
 */
import { dealFolds } from "../src/scoring/teach/cross-validation.ts"
import { minimise } from "../src/scoring/teach/lbfgs.ts"
import { subtractLogSum } from "../src/scoring/teach/logits.ts"
import { addProducts, addTransposedProducts } from "../src/scoring/teach/matrix.ts"
import { seededRandom } from "../src/scoring/teach/random.ts"

interface Labelled {
  readonly text: string
  readonly label: number
}

/** One over the penalty. */
const costs = [0.3, 3, 30, 300] as const
const folds = 5
const RIDGE = 1e-6

/** The share of the tested texts that it labels right. */
export async function tfidfAccuracy(
  train: readonly Labelled[],
  tested: readonly Labelled[],
  optionCount: number,
): Promise<number> {
  const space = spaceOf(train.map(({ text }) => text))
  const labels = Int32Array.from(train, ({ label }) => label)
  const rows = { labels, optionCount, size: train.length, numbers: space.rows }
  const cost = await bestCost(rows)
  const answers = answer(rows, await fit(rows, cost), space.project(tested.map(({ text }) => text)))
  return answers.filter(({ label }, at) => label === tested[at]?.label).length / tested.length
}

interface Rows {
  readonly labels: Int32Array
  readonly optionCount: number
  readonly size: number
  readonly numbers: Float64Array
}

async function bestCost(rows: Rows): Promise<number> {
  const dealt = dealFolds(rows.labels, folds, seededRandom(1))
  let best: { cost: number; right: number; loss: number } | null = null
  for (const cost of costs) {
    let [right, loss] = [0, 0]
    for (const fold of dealt) {
      const others = Int32Array.from([...rows.labels.keys()].filter((row) => !fold.includes(row)))
      const parameters = await fit(pick(rows, others), cost)
      const left = pick(rows, fold)
      for (const [at, { label, logs }] of answer(rows, parameters, left.numbers).entries()) {
        const own = left.labels[at] ?? 0
        right += label === own ? 1 : 0
        loss -= logs[own] ?? 0
      }
    }
    if (!best || right > best.right || (right === best.right && loss < best.loss))
      best = { cost, right, loss }
  }
  return best?.cost ?? costs[0]
}

function pick({ labels, optionCount, size, numbers }: Rows, rows: Int32Array): Rows {
  const picked = new Float64Array(rows.length * size)
  for (const [at, row] of rows.entries())
    picked.set(numbers.subarray(row * size, (row + 1) * size), at * size)
  return { labels: rows.map((row) => labels[row] ?? 0), optionCount, size, numbers: picked }
}

/** Biases, then weights by option. */
async function fit({ labels, optionCount, size, numbers }: Rows, cost: number): Promise<Float64Array> {
  const rowCount = labels.length
  const logits = new Float64Array(rowCount * optionCount)
  const objective = (at: Float64Array, gradient: Float64Array): number => {
    const weights = at.subarray(optionCount)
    for (let row = 0; row < rowCount; row++) logits.set(at.subarray(0, optionCount), row * optionCount)
    addProducts({ left: numbers, right: weights, rows: rowCount, size }, logits)
    gradient.fill(0)
    let loss = 0
    for (const [row, label] of labels.entries()) {
      const own = logits.subarray(row * optionCount, (row + 1) * optionCount)
      subtractLogSum(own)
      loss -= own[label] ?? 0
      for (let option = 0; option < optionCount; option++) {
        own[option] = Math.exp(own[option] ?? 0) - (option === label ? 1 : 0)
        gradient[option] = (gradient[option] ?? 0) + (own[option] ?? 0)
      }
    }
    addTransposedProducts(
      { left: logits, right: numbers, rows: rowCount, size },
      gradient.subarray(optionCount),
    )
    for (const [index, weight] of weights.entries()) {
      loss += (0.5 / cost) * weight * weight
      gradient[optionCount + index] = (gradient[optionCount + index] ?? 0) + weight / cost
    }
    return loss
  }
  const options = { iterationsMax: 100, gradientMax: 1e-4, gainMin: 1e-6, pace: async () => {} }
  return (await minimise(objective, new Float64Array(optionCount * (1 + size)), options)).at
}

function answer(
  { optionCount, size }: Rows,
  parameters: Float64Array,
  numbers: Float64Array,
): { label: number; logs: Float64Array }[] {
  const rowCount = numbers.length / size
  const logits = new Float64Array(rowCount * optionCount)
  for (let row = 0; row < rowCount; row++) logits.set(parameters.subarray(0, optionCount), row * optionCount)
  addProducts({ left: numbers, right: parameters.subarray(optionCount), rows: rowCount, size }, logits)
  return Array.from({ length: rowCount }, (_, row) => {
    const logs = logits.slice(row * optionCount, (row + 1) * optionCount)
    subtractLogSum(logs)
    return { label: logs.indexOf(Math.max(...logs)), logs }
  })
}

type Sparse = ReadonlyMap<string, number>

interface TextSpace {
  readonly rows: Float64Array
  project(texts: readonly string[]): Float64Array
}

function spaceOf(texts: readonly string[]): TextSpace {
  const counts = texts.map(countTerms)
  const frequencies = new Map<string, number>()
  for (const own of counts)
    for (const term of own.keys()) frequencies.set(term, (frequencies.get(term) ?? 0) + 1)
  const weigh = (own: Sparse): Sparse => {
    const known = [...own].flatMap(([term, count]): [string, number][] => {
      const frequency = frequencies.get(term)
      return frequency === undefined
        ? []
        : [[term, count * (1 + Math.log((1 + texts.length) / (1 + frequency)))]]
    })
    const length = Math.sqrt(known.reduce((sum, [, value]) => sum + value * value, 0)) || 1
    return new Map(known.map(([term, value]) => [term, value / length]))
  }
  const labelled = counts.map(weigh)
  const size = texts.length
  const factor = new Float64Array(size * size)
  const along = (row: Sparse, width: number): Float64Array => {
    const own = new Float64Array(width)
    for (let at = 0; at < width; at++) {
      let rest = product(row, labelled[at])
      for (let index = 0; index < at; index++) rest -= (factor[at * size + index] ?? 0) * (own[index] ?? 0)
      own[at] = rest / (factor[at * size + at] ?? 1)
    }
    return own
  }
  for (const [at, row] of labelled.entries()) {
    const own = along(row, at)
    factor.set(own, at * size)
    const rest = product(row, row) - own.reduce((sum, value) => sum + value * value, 0)
    factor[at * size + at] = Math.sqrt(Math.max(rest, 0) + RIDGE)
  }
  const project = (rows: readonly Sparse[]): Float64Array => {
    const all = new Float64Array(rows.length * size)
    for (const [at, row] of rows.entries()) all.set(along(row, size), at * size)
    return all
  }
  return {
    rows: project(labelled),
    project: (others) => project(others.map((text) => weigh(countTerms(text)))),
  }
}

function countTerms(text: string): Sparse {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? []
  const counts = new Map<string, number>()
  const count = (term: string): void => void counts.set(term, (counts.get(term) ?? 0) + 1)
  for (const [at, word] of words.entries()) {
    count(word)
    if (at > 0) count(`${words[at - 1] ?? ""} ${word}`)
  }
  return counts
}

function product(left: Sparse, right: Sparse | undefined): number {
  if (!right) return 0
  const [few, many] = left.size < right.size ? [left, right] : [right, left]
  let sum = 0
  for (const [term, value] of few) sum += value * (many.get(term) ?? 0)
  return sum
}
