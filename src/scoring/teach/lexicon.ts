/** The features that labelled texts share, each text as a sparse row of them, and the directions that such rows span. */
import { type FeatureCounts, type FeatureKind, featureKinds, featuresOf } from "./features.ts"

/** Features by kind and hash, each with its column. */
export interface Lexicon {
  readonly columns: Readonly<Record<FeatureKind, ReadonlyMap<number, number>>>
  /** How rare each is, by column. */
  readonly rarities: Float64Array
}

/** A text's features that the lexicon has; those of each kind have a length of one together. */
export interface SparseRow {
  readonly columns: Int32Array
  readonly values: Float64Array
}

/** A feature of one text alone says nothing of others. */
const TEXTS_MIN = 2
/** Of each kind; the most frequent ones stay. */
const FEATURES_MAX = 20_000

export function lexiconOf(texts: readonly FeatureCounts[]): Lexicon {
  const rarities: number[] = []
  const columnsOf = (kind: FeatureKind): Map<number, number> => {
    const found = new Map<number, number>()
    for (const counts of texts)
      for (const feature of counts[kind].keys()) found.set(feature, (found.get(feature) ?? 0) + 1)
    const shared = [...found].filter(([, textCount]) => textCount >= TEXTS_MIN)
    const kept = shared.toSorted(([a, x], [b, y]) => y - x || a - b).slice(0, FEATURES_MAX)
    return new Map(
      kept.map(([feature, textCount]) => {
        const column = rarities.push(1 + Math.log((1 + texts.length) / (1 + textCount))) - 1
        return [feature, column]
      }),
    )
  }
  const [word, character, field] = [columnsOf("word"), columnsOf("character"), columnsOf("field")]
  return { columns: { word, character, field }, rarities: Float64Array.from(rarities) }
}

export function sparseRow({ columns, rarities }: Lexicon, counts: FeatureCounts): SparseRow {
  const found: number[] = []
  const values: number[] = []
  for (const kind of featureKinds) {
    const start = values.length
    let squares = 0
    for (const [feature, occurrences] of counts[kind]) {
      const column = columns[kind].get(feature)
      if (column === undefined) continue
      const value = (1 + Math.log(occurrences)) * (rarities[column] ?? 0)
      squares += value * value
      found.push(column)
      values.push(value)
    }
    const length = Math.sqrt(squares)
    for (let at = start; at < values.length; at++) values[at] = (values[at] ?? 0) / length
  }
  return { columns: Int32Array.from(found), values: Float64Array.from(values) }
}

/**
 * What sparse rows are along directions, of which there are at most as many as rows: their products with some of the rows, the
 * landmarks, after the landmarks' own products are taken out. A head along these directions is one on the features themselves.
 */
export interface LexicalSpace {
  readonly lexicon: Lexicon
  readonly landmarks: readonly SparseRow[]
  /** The lower triangle of Cholesky's factor of the landmarks' products. */
  readonly factor: Float64Array
}

const LANDMARKS_MAX = 512
/** Equal texts have equal rows, whose products have no factor without it. */
const RIDGE = 1e-6

/** With the rows of all texts along the directions, one after another. */
export function lexicalSpaceOf(texts: readonly string[]): { space: LexicalSpace; rows: Float64Array } {
  const counts = texts.map(featuresOf)
  const lexicon = lexiconOf(counts)
  const sparse = counts.map((own) => sparseRow(lexicon, own))
  const landmarks = sparse.slice(0, LANDMARKS_MAX)
  const space = { lexicon, landmarks, factor: factorOf(landmarks, lexicon.rarities.length) }
  return { space, rows: projectRows(space, sparse) }
}

export const projectTexts = (space: LexicalSpace, texts: readonly string[]): Float64Array =>
  projectRows(
    space,
    texts.map((text) => sparseRow(space.lexicon, featuresOf(text))),
  )

function projectRows(space: LexicalSpace, rows: readonly SparseRow[]): Float64Array {
  const { landmarks, factor, lexicon } = space
  const size = landmarks.length
  const along = new Float64Array(rows.length * size)
  const spread = new Float64Array(lexicon.rarities.length)
  for (const [at, row] of rows.entries())
    withSpread(row, spread, () =>
      solveForward(factor, along.subarray(at * size, (at + 1) * size), (index) =>
        product(landmarks[index], spread),
      ),
    )
  return along
}

function factorOf(rows: readonly SparseRow[], width: number): Float64Array {
  const size = rows.length
  const factor = new Float64Array(size * size)
  const spread = new Float64Array(width)
  for (const [at, row] of rows.entries())
    withSpread(row, spread, () => {
      const own = factor.subarray(at * size, at * size + at)
      solveForward(factor, own, (index) => product(rows[index], spread), size)
      const rest = product(row, spread) + RIDGE - own.reduce((sum, value) => sum + value * value, 0)
      factor[at * size + at] = Math.sqrt(Math.max(rest, RIDGE))
    })
  return factor
}

/** Writes the solution of factor times solution = right side. */
function solveForward(
  factor: Float64Array,
  into: Float64Array,
  rightSide: (index: number) => number,
  size = into.length,
): void {
  for (let row = 0; row < into.length; row++) {
    let rest = rightSide(row)
    for (let at = 0; at < row; at++) rest -= (factor[row * size + at] ?? 0) * (into[at] ?? 0)
    into[row] = rest / (factor[row * size + row] ?? 1)
  }
}

/** Runs with the row's values at their columns. */
function withSpread({ columns, values }: SparseRow, spread: Float64Array, run: () => void): void {
  for (const [at, column] of columns.entries()) spread[column] = values[at] ?? 0
  run()
  for (const column of columns) spread[column] = 0
}

function product(row: SparseRow | undefined, spread: Float64Array): number {
  if (!row) return 0
  const { columns, values } = row
  let sum = 0
  for (let at = 0; at < columns.length; at++) sum += (values[at] ?? 0) * (spread[columns[at] ?? 0] ?? 0)
  return sum
}

/** The weights of features, by column, that stand for weights of directions. */
export function expandWeights(
  { landmarks, factor, lexicon }: LexicalSpace,
  weights: ArrayLike<number>,
): Float64Array {
  const size = landmarks.length
  const shares = Float64Array.from(weights)
  for (let row = size - 1; row >= 0; row--) {
    let rest = shares[row] ?? 0
    for (let below = row + 1; below < size; below++)
      rest -= (factor[below * size + row] ?? 0) * (shares[below] ?? 0)
    shares[row] = rest / (factor[row * size + row] ?? 1)
  }
  const expanded = new Float64Array(lexicon.rarities.length)
  for (const [at, { columns, values }] of landmarks.entries())
    for (const [index, column] of columns.entries())
      expanded[column] = (expanded[column] ?? 0) + (shares[at] ?? 0) * (values[index] ?? 0)
  return expanded
}
