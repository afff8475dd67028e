/**
 * The encoder's network in ONNX Runtime: evidence is read once, branches are scored on what was read.
 *
 * A run has rows of tokens. Each token has a group: -1 padding, 0 evidence, 1 and up the stems and branches of its row. It sees
 * the evidence, its own group and its parent, which is a branch's stem, and the row's past: keys and values of evidence that was
 * read before.
 *
 * A run blocks its thread until it ends and cannot be stopped, so this belongs into a thread of its own. The network may be cut into
 * parts of some layers each: a long run lets short ones pass between its parts.
 */
import { type InferenceSession, Tensor } from "onnxruntime-common"
import { nextTurn } from "../../base/turns.ts"
import type { EncoderDescription } from "./model-file.ts"
import type { ModelPart } from "./model-parts.ts"

export type Tokens = Int32Array

/** Branches that begin alike: their stem is read once, and sees the evidence and itself. It is empty for a branch by itself. */
export interface QuestionTokens {
  readonly stem: Tokens
  readonly branches: readonly Tokens[]
}

/** Questions about evidence that was read before, in one row. */
export type BranchRow = readonly QuestionTokens[]

/** Evidence and the questions about it, in one row. */
export interface GraphRow {
  readonly evidence: Tokens
  readonly questions: readonly QuestionTokens[]
  readonly pooling: Pooling
}

/**
 * What is wanted of the evidence's vector. The middle layer's values are computed anyway; for the whole vector every token
 * also goes through the whole of the last layer.
 */
export type Pooling = "none" | "middle" | "whole"

export interface BranchScores {
  /** One per branch, question after question. */
  readonly margins: Float32Array
  /** How much the tuned similarity of its option to the evidence counts, one per branch. */
  readonly similarityWeights: Float32Array
}

export interface RowScores extends BranchScores {
  /**
   * The sums over the evidence of the last layer, as it is and as recalled, which are zero unless the whole is wanted, and of
   * the middle layer's values; empty when nothing is wanted.
   */
  readonly vector: Float32Array
}

/** What evidence has become: the network's keys and values, one pair per layer. */
export interface Past {
  /** Tokens that it has room for. */
  readonly tokens: number
  readonly bytes: number
}

/** What the scheduler needs of a network. */
export interface Graph {
  bytesOf(tokens: number): number
  createPast(tokens: number): Past
  /** Reads a block of evidence into a past; blocks do not see each other. Returns its vector, as in `RowScores`. */
  readEvidence(past: Past, block: Tokens, start: number): Promise<Float32Array>
  /** A past with room for `tokens` more that begins with what another has read, which is kept until it is first used. */
  extendPast(past: Past, tokens: number): Past
  releasePast(past: Past): void
  /** Reads the next part of a branch into a past; it sees the past and itself. */
  readBranch(past: Past, part: Tokens, at: BranchPart): Promise<void>
  scoreRows(rows: readonly GraphRow[]): Promise<RowScores[]>
  /** Rows of questions, scored row after row. `offset` is the position of the first token in its branch. */
  scoreQuestions(past: Past, rows: readonly BranchRow[], offset?: number): Promise<BranchScores>
  close(): Promise<void>
}

export interface BranchPart {
  /** Position of the part's first token in its branch. */
  readonly offset: number
  /** Row of the past that it goes to. */
  readonly row: number
}

/** Added to a score to hide a row of a past that holds nothing yet. */
const HIDDEN_SCORE = -10_000
/** Of keys: a one for the run's own share, and what is added to the score. */
const KEY_COLUMNS_MORE = 2
const FLOAT_BYTES = 4
const PADDING_GROUP = -1
/**
 * Rows are padded to whole vectors of the processor (four floats on ARM): the rest of a row is added up in another order, and
 * what rounding makes of that, int8 magnifies. So a row has the same margins whatever it is run with.
 */
const VECTOR_SIZE = 4

/** A token that sees so many that were read before takes as long as two that see none. */
const PAST_TOKENS_OF_ONE = 768

/** Of the parts of a network, in their order. Runs that cost more than `shortRunTokensMax` let others pass between the parts. */
export function createGraph(
  parts: readonly OpenPart[],
  description: EncoderDescription,
  shortRunTokensMax = Infinity,
): Graph {
  const names = new Set(parts.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]))
  if (namesOf(description).some((name) => !names.has(name)))
    throw new Error("Cannot load the model: it is not the graph of an Umpire encoder")
  return new OnnxGraph(parts, description, shortRunTokensMax)
}

export interface OpenPart extends Omit<ModelPart, "bytes"> {
  readonly session: InferenceSession
}

/** The first row stands for the tokens of the run itself, and is zero. */
interface LayeredPast extends Past {
  readonly keys: readonly Float32Array[]
  readonly values: readonly Float32Array[]
  /** Of every row, for networks that look at how far apart tokens stand. */
  readonly positions: Int32Array
}

/** Every past that is given to this graph was made by it. */
const layered = (past: Past): LayeredPast => past as LayeredPast

interface Part {
  readonly tokens: Tokens
  readonly group: number
  /** The group of its stem; 0 for none. */
  readonly parent: number
  /** Position of its first token. */
  readonly offset: number
  /** Whether a margin is read at its last token. */
  readonly isBranch: boolean
}
type PlacedRow = readonly Part[]

/** Tokens of a run: the row and the place in it. */
type Places = readonly (readonly number[])[]

interface Reading {
  readonly row: PlacedRow
  readonly ends: Places
  readonly inputs: Feeds
  /** Row of the past that the first token goes to. */
  readonly to: number
}

class OnnxGraph implements Graph {
  readonly #parts: readonly OpenPart[]
  readonly #description: EncoderDescription
  readonly #shortRunTokensMax: number
  readonly #shortRuns = new Set<Promise<Feeds>>()
  readonly #cacheOutputs: readonly string[]
  readonly #scoreOutputs: readonly string[]
  readonly #middleValues: string
  readonly #hasPastPositions: boolean
  readonly #keySize: number
  readonly #valueSize: number

  constructor(parts: readonly OpenPart[], description: EncoderDescription, shortRunTokensMax: number) {
    this.#parts = parts
    this.#description = description
    this.#shortRunTokensMax = shortRunTokensMax
    this.#cacheOutputs = [...layerNames(description.layers, ""), "hidden"]
    this.#scoreOutputs = SCORE_NAMES
    this.#middleValues = `values.${Math.floor(description.layers / 2)}`
    this.#hasPastPositions = parts.some(({ inputs }) => inputs.includes(PAST_POSITIONS))
    this.#keySize = description.headSize + KEY_COLUMNS_MORE
    this.#valueSize = description.headSize
  }

  bytesOf(tokens: number): number {
    return pastBytes(this.#description, tokens)
  }

  createPast(tokens: number): LayeredPast {
    const { layers, heads } = this.#description
    const rows = tokens + 1
    const keys = Array.from({ length: layers }, () => {
      const layer = new Float32Array(heads * rows * this.#keySize)
      for (let row = 0; row < heads * rows; row++)
        if (row % rows > 0) layer[(row + 1) * this.#keySize - 1] = HIDDEN_SCORE
      return layer
    })
    const values = Array.from({ length: layers }, () => new Float32Array(heads * rows * this.#valueSize))
    return { tokens, bytes: this.bytesOf(tokens), keys, values, positions: new Int32Array(rows) }
  }

  extendPast(past: Past, tokens: number): Past {
    const from = layered(past)
    const longer = this.createPast(past.tokens + tokens)
    for (const [layer, keys] of from.keys.entries())
      this.#copyRows(keys, longer.keys[layer], { size: this.#keySize, count: past.tokens })
    for (const [layer, values] of from.values.entries())
      this.#copyRows(values, longer.values[layer], { size: this.#valueSize, count: past.tokens })
    longer.positions.set(from.positions)
    return longer
  }

  releasePast(): void {
    // Unreferenced tensors are garbage-collected.
  }

  async readEvidence(past: Past, block: Tokens, start: number): Promise<Float32Array> {
    const row = [evidencePart(block, start)]
    const ends = placesOf(0, 0, block.length)
    const inputs = this.#noPast(1)
    const { hidden, middle } = await this.#read(layered(past), { row, ends, inputs, to: start })
    return joined(sumRows(hidden, 0, ends.length), sumRows(middle, 0, block.length))
  }

  async readBranch(past: Past, part: Tokens, { offset, row }: BranchPart): Promise<void> {
    const taken = layered(past)
    const inputs = this.#pastInputs(taken)
    const placed = questionParts([{ stem: part, branches: [] }], offset)
    await this.#read(taken, { row: placed, ends: [[0, 0]], inputs, to: row })
  }

  /** Returns the last layer at the ends, and the middle layer's values of all tokens. */
  async #read(
    past: LayeredPast,
    { row, ends, inputs, to }: Reading,
  ): Promise<{ hidden: Float32Array; middle: Float32Array }> {
    const count = lengthOf(row)
    const tokens = this.#tokenInputs([row], count)
    const feeds = { ...tokens, ends: places(ends), ...inputs }
    const read = await this.#run(feeds, this.#cacheOutputs)
    for (const [layer, keys] of past.keys.entries()) {
      this.#orderByHeads(floats(read[`keys.${layer}`]), keys, this.#keySize, { count, to })
      await this.#letShortRunsPass()
    }
    for (const [layer, values] of past.values.entries()) {
      this.#orderByHeads(floats(read[`values.${layer}`]), values, this.#valueSize, { count, to })
      await this.#letShortRunsPass()
    }
    // The inputs that are made here are all int32.
    past.positions.set(tokens["positions"]?.data as Int32Array, to + 1)
    return { hidden: floats(read["hidden"]), middle: floats(read[this.#middleValues]) }
  }

  /** Copies the first `count` rows of each head of a past, after the zero row, to the beginning of a longer one. */
  #copyRows(
    from: Float32Array,
    target: Float32Array | undefined,
    { size, count }: { size: number; count: number },
  ): void {
    if (target === undefined) return
    const { heads } = this.#description
    const [stride, targetStride] = [from.length / heads, target.length / heads]
    for (let head = 0; head < heads; head++)
      target.set(
        from.subarray(head * stride + size, head * stride + (count + 1) * size),
        head * targetStride + size,
      )
  }

  /** Puts the heads' numbers of `count` tokens, one token after the other, into a past, from its row `to` on. */
  #orderByHeads(
    tokens: Float32Array,
    past: Float32Array,
    size: number,
    { count, to }: { count: number; to: number },
  ): void {
    const { heads } = this.#description
    const stride = past.length / heads
    for (let head = 0; head < heads; head++)
      for (let token = 0; token < count; token++) {
        const from = (token * heads + head) * size
        past.set(tokens.subarray(from, from + size), head * stride + (to + 1 + token) * size)
      }
  }

  async scoreRows(rows: readonly GraphRow[]): Promise<RowScores[]> {
    const placed = rows.map(({ evidence, questions }) => [
      evidencePart(evidence, 0),
      ...questionParts(questions),
    ])
    const branchEnds = placed.map(branchEndsOf)
    const ends = rows.flatMap(({ evidence, pooling }, row) => [
      ...(branchEnds[row] ?? []),
      ...(pooling === "whole" ? placesOf(row, 0, evidence.length) : []),
    ])
    const isAnyPooled = rows.some(({ pooling }) => pooling !== "none")
    const outputs = isAnyPooled ? [...this.#scoreOutputs, this.#middleValues] : this.#scoreOutputs
    const scored = await this.#score(placed, {
      ends,
      inputs: this.#noPast(rows.length),
      outputs,
    })
    let taken = 0
    return rows.map(({ evidence, pooling }, row) => {
      const start = taken
      const end = (taken += branchEnds[row]?.length ?? 0)
      if (pooling === "whole") taken += evidence.length
      const middle = row * scored.width
      return {
        margins: scored.margins.slice(start, end),
        similarityWeights: scored.similarityWeights.slice(start, end),
        vector:
          pooling === "none"
            ? new Float32Array()
            : joined(
                sumRows(scored.hidden, end, taken, ends.length),
                sumRows(scored.middle, middle, middle + evidence.length, rows.length * scored.width),
              ),
      }
    })
  }

  async scoreQuestions(past: Past, rows: readonly BranchRow[], offset = 0): Promise<BranchScores> {
    const placed = rows.map((questions) => questionParts(questions, offset))
    const inputs = this.#pastInputs(layered(past))
    return await this.#score(placed, {
      ends: placed.flatMap(branchEndsOf),
      inputs,
      outputs: this.#scoreOutputs,
    })
  }

  /** The scores and the last layer at the ends, the middle layer's values if they are among the outputs, and the rows' length. */
  async #score(
    rows: readonly PlacedRow[],
    { ends, inputs, outputs }: { ends: Places; inputs: Feeds; outputs: readonly string[] },
  ): Promise<BranchScores & { hidden: Float32Array; middle: Float32Array; width: number }> {
    const longest = Math.max(...rows.map(lengthOf))
    const width = Math.ceil(longest / VECTOR_SIZE) * VECTOR_SIZE
    const feeds = { ...this.#tokenInputs(rows, width), ends: places(ends), ...inputs }
    const found = await this.#run(feeds, outputs)
    const { margins, similarity, hidden } = found
    const similarityWeights = floats(similarity)
    const values = found[this.#middleValues]
    const middle = values ? floats(values) : new Float32Array()
    return { margins: floats(margins), similarityWeights, hidden: floats(hidden), middle, width }
  }

  async #run(feeds: Feeds, wanted: readonly string[]): Promise<Feeds> {
    const [, , past = 1] = feeds["past_keys.0"]?.dims ?? []
    const isLong = costOf(feeds["ids"]?.size ?? 0, past - 1) > this.#shortRunTokensMax
    if (isLong) return await this.#runParts(feeds, wanted, async () => await this.#letShortRunsPass())
    const run = this.#runParts(feeds, wanted)
    this.#shortRuns.add(run)
    try {
      return await run
    } finally {
      this.#shortRuns.delete(run)
    }
  }

  async #runParts(feeds: Feeds, wanted: readonly string[], between?: () => Promise<void>): Promise<Feeds> {
    const known = { ...feeds }
    for (const { session, inputs, outputs, passedOn } of this.#parts) {
      const given = Object.fromEntries(inputs.flatMap((name) => (known[name] ? [[name, known[name]]] : [])))
      const fetched = outputs.filter((name) => passedOn.includes(name) || wanted.includes(name))
      const found = await session.run(given, fetched)
      Object.assign(known, found)
      if (passedOn.length > 0) await between?.()
    }
    return known
  }

  /** ONNX Runtime lets others have their turn after each part of a short run too: a long one waits for all of its parts. */
  async #letShortRunsPass(): Promise<void> {
    await nextTurn()
    while (this.#shortRuns.size > 0) {
      await Promise.allSettled(this.#shortRuns)
      await nextTurn()
    }
  }

  #tokenInputs(rows: readonly PlacedRow[], width: number): Feeds {
    const { evidencePositions, branchPositions } = this.#description
    const size = rows.length * width
    const ids = new Int32Array(size)
    const positions = new Int32Array(size)
    const groups = new Int32Array(size).fill(PADDING_GROUP)
    const parents = new Int32Array(size)
    for (const [row, parts] of rows.entries()) {
      let at = row * width
      for (const { tokens, group, parent, offset } of parts) {
        ids.set(tokens, at)
        groups.fill(group, at, at + tokens.length)
        parents.fill(parent, at, at + tokens.length)
        for (let index = 0; index < tokens.length; index++) {
          const place = offset + index
          positions[at++] =
            group === 0 ? place % evidencePositions : evidencePositions + (place % branchPositions)
        }
      }
    }
    const dims = [rows.length, width]
    return {
      ids: ints(ids, dims),
      positions: ints(positions, dims),
      group: ints(groups, dims),
      parent: ints(parents, dims),
    }
  }

  /** Nothing was read before: the zero row alone, for each row of the run. */
  #noPast(rows: number): Feeds {
    const { layers, heads } = this.#description
    const zeros = (size: number): Tensor =>
      new Tensor("float32", new Float32Array(rows * heads * size), [rows, heads, 1, size])
    const [keys, values] = [zeros(this.#keySize), zeros(this.#valueSize)]
    return {
      ...Object.fromEntries(
        layerNames(layers, "past_").map((name) => [name, name.startsWith("past_keys") ? keys : values]),
      ),
      ...this.#positionInput(new Int32Array(rows), rows),
    }
  }

  #positionInput(positions: Int32Array, pasts: number): Feeds {
    if (!this.#hasPastPositions) return {}
    return { [PAST_POSITIONS]: ints(positions, [pasts, positions.length / pasts]) }
  }

  #pastInputs({ tokens, keys, values, positions }: LayeredPast): Feeds {
    const { heads } = this.#description
    const tensors = this.#positionInput(positions, 1)
    for (const [layer, data] of keys.entries())
      tensors[`past_keys.${layer}`] = new Tensor("float32", data, [1, heads, tokens + 1, this.#keySize])
    for (const [layer, data] of values.entries())
      tensors[`past_values.${layer}`] = new Tensor("float32", data, [1, heads, tokens + 1, this.#valueSize])
    return tensors
  }

  async close(): Promise<void> {
    for (const { session } of this.#parts) await session.release()
  }
}

/** Of a run of so many tokens that see so many of a past, in tokens that see none. */
export const costOf = (tokens: number, past: number): number => tokens * (1 + past / PAST_TOKENS_OF_ONE)

const evidencePart = (tokens: Tokens, offset: number): Part => ({
  tokens,
  group: 0,
  parent: 0,
  offset,
  isBranch: false,
})

function questionParts(questions: readonly QuestionTokens[], offset = 0): Part[] {
  const parts: Part[] = []
  let group = 0
  for (const { stem, branches } of questions) {
    const parent = stem.length === 0 ? 0 : ++group
    if (parent > 0) parts.push({ tokens: stem, group, parent: 0, offset, isBranch: false })
    for (const tokens of branches)
      parts.push({ tokens, group: ++group, parent, offset: offset + stem.length, isBranch: true })
  }
  return parts
}

const lengthOf = (row: PlacedRow): number => row.reduce((sum, { tokens }) => sum + tokens.length, 0)

function branchEndsOf(parts: PlacedRow, row: number): Places {
  let at = -1
  return parts.flatMap(({ tokens, isBranch }) => {
    at += tokens.length
    return isBranch ? [[row, at]] : []
  })
}

type Feeds = Record<string, Tensor>

export function pastBytes({ layers, heads, headSize }: EncoderDescription, tokens: number): number {
  return (tokens + 1) * layers * heads * (2 * headSize + KEY_COLUMNS_MORE) * FLOAT_BYTES
}

const layerNames = (layers: number, prefix: string): string[] =>
  Array.from({ length: layers }, (_, layer) => [`${prefix}keys.${layer}`, `${prefix}values.${layer}`]).flat()

/** `hidden` is the last layer and, beside it, its projection that recalls the network before tuning. */
const SCORE_NAMES = ["margins", "hidden", "similarity"]

/** An input of networks that look at how far apart tokens stand; others do not have it. */
const PAST_POSITIONS = "past_positions"

/** Inputs and outputs that the graph must have. */
const namesOf = (description: EncoderDescription): string[] => [
  "ids",
  "positions",
  "group",
  "parent",
  "ends",
  ...layerNames(description.layers, "past_"),
  ...layerNames(description.layers, ""),
  ...SCORE_NAMES,
]

export const ints = (values: ArrayLike<number>, dims: readonly number[]): Tensor =>
  new Tensor("int32", values instanceof Int32Array ? values : Int32Array.from(values), dims)

const places = (ends: Places): Tensor => ints(ends.flat(), [ends.length, 2])

const placesOf = (row: number, start: number, end: number): Places =>
  Array.from({ length: end - start }, (_, index) => [row, start + index])

/** The sum of rows `start` to `end` of a matrix of `count` rows. */
function sumRows(matrix: Float32Array, start: number, end: number, count = end): Float32Array {
  const width = matrix.length / count
  const sum = new Float32Array(width)
  for (let row = start; row < end; row++)
    for (let at = 0; at < width; at++) sum[at] = (sum[at] ?? 0) + (matrix[row * width + at] ?? 0)
  return sum
}

function joined(first: Float32Array, second: Float32Array): Float32Array {
  const both = new Float32Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}

export function floats(tensor: Tensor | undefined): Float32Array {
  // The graph's outputs that are read here are all float32.
  return tensor?.data as Float32Array
}
