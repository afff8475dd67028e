/** The features that labelled texts share, each text as a sparse row of them, and the directions that such rows span. */
import { type FeatureCounts, type FeatureKind, featureKinds } from "./features.ts"

/** Features by kind and hash, each with its column. */
export interface Lexicon {
  readonly columns: Readonly<Record<FeatureKind, ReadonlyMap<number, number>>>
  /** How rare each is, by column. */
  readonly rarities: Float64Array
}

/** A text's features that the lexicon has; those of each kind have a length of one together. */
interface SparseRow {
  readonly columns: Int32Array
  readonly values: Float64Array
}

/** A feature of one text alone says nothing of others. */
const TEXTS_MIN = 2
/** Of each kind; the most frequent ones stay. Fields are read one by one, not along directions, so that fewer can stay. */
const FEATURES_MAX: Readonly<Record<FeatureKind, number>> = { word: 20_000, character: 20_000, field: 512 }

/** Of some kinds of features. */
export function lexiconOf(texts: readonly FeatureCounts[], kinds: readonly FeatureKind[]): Lexicon {
  const rarities: number[] = []
  const columnsOf = (kind: FeatureKind): Map<number, number> => {
    if (!kinds.includes(kind)) return new Map()
    const found = new Map<number, number>()
    for (const counts of texts)
      for (const feature of counts[kind].keys()) found.set(feature, (found.get(feature) ?? 0) + 1)
    const shared = [...found].filter(([, textCount]) => textCount >= TEXTS_MIN)
    const kept = shared.toSorted(([a, x], [b, y]) => y - x || a - b).slice(0, FEATURES_MAX[kind])
    return new Map(
      kept.map(([feature, textCount]) => {
        // A rare value of a field is no surer sign than a frequent one.
        const rarity = kind === "field" ? 1 : 1 + Math.log((1 + texts.length) / (1 + textCount))
        return [feature, rarities.push(rarity) - 1]
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

/** Rows of all columns, one after another. */
export function denseRows(lexicon: Lexicon, texts: readonly FeatureCounts[]): Float64Array {
  const size = lexicon.rarities.length
  const all = new Float64Array(texts.length * size)
  for (const [row, counts] of texts.entries()) {
    const { columns, values } = sparseRow(lexicon, counts)
    for (const [at, column] of columns.entries()) all[row * size + column] = values[at] ?? 0
  }
  return all
}

/**
 * What sparse rows are along directions, of which there are at most as many as rows: their products with some of the rows, the
 * landmarks, after the landmarks' own products are taken out. A head along these directions is one on the features themselves.
 */
export interface LexicalSpace {
  readonly lexicon: Lexicon
  readonly landmarks: readonly SparseRow[]
  /** By column: the landmarks that have the feature, and their values of it. */
  readonly postings: readonly Posting[]
  /** The lower triangle of Cholesky's factor of the landmarks' products, row after row. */
  readonly factor: readonly Float64Array[]
}

interface Posting {
  readonly landmarks: number[]
  readonly values: number[]
}

const LANDMARKS_MAX = 512
/** A row of which less than this is its own, beside what the landmarks have, is none. */
const OWN_MIN = 1e-4

/** With the rows of all texts along the directions, one after another. */
export function lexicalSpaceOf(
  texts: readonly FeatureCounts[],
  kinds: readonly FeatureKind[],
): { space: LexicalSpace; rows: Float64Array } {
  const lexicon = lexiconOf(texts, kinds)
  const sparse = texts.map((own) => sparseRow(lexicon, own))
  const landmarks: SparseRow[] = []
  const factor: Float64Array[] = []
  const postings = Array.from(lexicon.rarities, (): Posting => ({ landmarks: [], values: [] }))
  for (const row of sparse) {
    if (landmarks.length === LANDMARKS_MAX) break
    const own = along({ postings, factor }, row)
    const rest = squaredLength(row.values) - squaredLength(own)
    if (rest < OWN_MIN) continue
    for (const [at, column] of row.columns.entries()) {
      postings[column]?.landmarks.push(landmarks.length)
      postings[column]?.values.push(row.values[at] ?? 0)
    }
    landmarks.push(row)
    factor.push(Float64Array.of(...own, Math.sqrt(rest)))
  }
  const space = { lexicon, landmarks, postings, factor }
  return { space, rows: projectRows(space, sparse) }
}

export const projectTexts = (space: LexicalSpace, texts: readonly FeatureCounts[]): Float64Array =>
  projectRows(
    space,
    texts.map((own) => sparseRow(space.lexicon, own)),
  )

function projectRows(space: LexicalSpace, rows: readonly SparseRow[]): Float64Array {
  const size = space.landmarks.length
  const all = new Float64Array(rows.length * size)
  for (const [at, row] of rows.entries()) all.set(along(space, row), at * size)
  return all
}

/** The solution of factor times solution = products of the row with the landmarks. */
function along(
  { postings, factor }: Pick<LexicalSpace, "postings" | "factor">,
  { columns, values }: SparseRow,
): Float64Array {
  const places = new Float64Array(factor.length)
  for (const [index, column] of columns.entries()) {
    const value = values[index] ?? 0
    const posting = postings[column]
    if (!posting) continue
    for (let at = 0; at < posting.landmarks.length; at++) {
      const landmark = posting.landmarks[at] ?? 0
      places[landmark] = (places[landmark] ?? 0) + value * (posting.values[at] ?? 0)
    }
  }
  for (const [row, own] of factor.entries()) {
    let rest = places[row] ?? 0
    for (let at = 0; at < row; at++) rest -= (own[at] ?? 0) * (places[at] ?? 0)
    places[row] = rest / (own[row] ?? 1)
  }
  return places
}

const squaredLength = (values: Float64Array): number => values.reduce((sum, value) => sum + value * value, 0)

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
      rest -= (factor[below]?.[row] ?? 0) * (shares[below] ?? 0)
    shares[row] = rest / (factor[row]?.[row] ?? 1)
  }
  const expanded = new Float64Array(lexicon.rarities.length)
  for (const [at, { columns, values }] of landmarks.entries())
    for (const [index, column] of columns.entries())
      expanded[column] = (expanded[column] ?? 0) + (shares[at] ?? 0) * (values[index] ?? 0)
  return expanded
}
