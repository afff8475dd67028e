/** A decoder without a model: it enforces llama.cpp's rules and answers with a hash of what each token can see. */
import assert from "node:assert/strict"
import type { BatchToken, Decoder, KeptState, SequenceStates } from "../src/engine/llama/decoder.ts"

interface FakeDecoderOptions {
  readonly cellsMax: number
  readonly sequencesMax: number
  readonly batchTokensMax: number
  /** All of them when absent. */
  readonly cellsUseful?: number
  /** How many states it can keep; as many as fit when absent. */
  readonly statesMax?: number
  readonly stateTokensMin?: number
}

interface Cell {
  readonly token: number
  holders: number
}

export class FakeDecoder implements Decoder {
  readonly cellsMax: number
  readonly cellsUseful: number
  readonly sequencesMax: number
  readonly batchTokensMax: number
  readonly states: FakeStates
  readonly batches: (readonly BatchToken[])[] = []
  cellsPeak = 0
  /** Called before each decode; whatever it throws is the decode's failure. */
  beforeDecode: (decode: number) => void = () => undefined
  readonly #sequences: Cell[][]
  #cells = 0
  #differences = new Map<number, number>()
  #busy = false

  constructor(options: FakeDecoderOptions) {
    this.cellsMax = options.cellsMax
    this.cellsUseful = options.cellsUseful ?? options.cellsMax
    this.sequencesMax = options.sequencesMax
    this.batchTokensMax = options.batchTokensMax
    this.#sequences = Array.from({ length: options.sequencesMax }, () => [])
    this.states = new FakeStates(options, {
      read: (sequence) => this.#exclusively(() => this.#tokensOf(sequence)),
      write: (sequence, tokens) => this.#exclusively(() => this.#place(sequence, tokens)),
      length: (sequence) => this.#sequence(sequence).length,
    })
  }

  get cellsUsed(): number {
    return this.#cells
  }

  get tokensDecoded(): number {
    return this.batches.reduce((sum, batch) => sum + batch.length, 0)
  }

  async decode(batch: readonly BatchToken[]): Promise<void> {
    await this.#exclusively(() => {
      this.beforeDecode(this.batches.length)
      this.#checkBatch(batch)
      this.batches.push(batch)
      this.#differences = new Map()
      for (const [index, entry] of batch.entries()) this.#evaluate(index, entry)
    })
  }

  #checkBatch(batch: readonly BatchToken[]): void {
    assert(batch.length > 0 && batch.length <= this.batchTokensMax, `a batch of ${batch.length} tokens`)
    for (const { sequences } of batch) {
      assert(sequences.length > 0, "a token of no sequence")
      assert.equal(new Set(sequences).size, sequences.length, "a sequence named twice")
      const lengths = new Set(sequences.map((sequence) => this.#sequence(sequence).length))
      assert.equal(lengths.size, 1, "coupled sequences hold different positions")
    }
  }

  #evaluate(index: number, { token, position, sequences, output }: BatchToken): void {
    const cell: Cell = { token, holders: sequences.length }
    this.#cells++
    this.cellsPeak = Math.max(this.cellsPeak, this.#cells)
    assert(this.#cells <= this.cellsMax, "more cells than there are")
    for (const sequence of sequences) {
      const cells = this.#sequence(sequence)
      assert.equal(position, cells.length, `sequence ${sequence} skips or repeats a position`)
      cells.push(cell)
    }
    const views = new Set(sequences.map((sequence) => hashTokens(this.#tokensOf(sequence))))
    assert.equal(views.size, 1, "the sequences of a token see different tokens")
    if (output) this.#differences.set(index, [...views][0] ?? Number.NaN)
  }

  difference(batchIndex: number): number {
    assert(!this.#busy, "read during a decode")
    const difference = this.#differences.get(batchIndex)
    assert(difference !== undefined, `no output was asked at ${batchIndex}`)
    return difference
  }

  copySequence(from: number, to: number, start: number, end: number): void {
    assert(!this.#busy, "copied during a decode")
    const target = this.#sequence(to)
    assert.equal(target.length, Math.min(start, target.length), "copied over cells that are held")
    assert.equal(target.length, start, "copied past a gap")
    for (const cell of this.#sequence(from).slice(start, end)) {
      cell.holders++
      target.push(cell)
    }
    assert.equal(target.length, end, "copied more than the source holds")
  }

  removeSequence(sequence: number, start: number): void {
    assert(!this.#busy, "removed during a decode")
    for (const cell of this.#sequence(sequence).splice(start)) {
      cell.holders--
      if (cell.holders === 0) this.#cells--
    }
  }

  clear(): void {
    for (const sequence of this.#sequences.keys()) this.removeSequence(sequence, 0)
  }

  #place(sequence: number, tokens: readonly number[]): void {
    const cells = this.#sequence(sequence)
    assert.equal(cells.length, 0, "restored into a sequence that is held")
    for (const token of tokens) cells.push({ token, holders: 1 })
    this.#cells += cells.length
    this.cellsPeak = Math.max(this.cellsPeak, this.#cells)
    assert(this.#cells <= this.cellsMax, "more cells than there are")
  }

  async #exclusively<Result>(act: () => Result): Promise<Result> {
    assert(!this.#busy, "two calls at one time")
    this.#busy = true
    await new Promise((resolve) => setImmediate(resolve))
    this.#busy = false
    return act()
  }

  #tokensOf(sequence: number): number[] {
    return this.#sequence(sequence).map((cell) => cell.token)
  }

  #sequence(sequence: number): Cell[] {
    const cells = this.#sequences[sequence]
    assert(cells !== undefined, `no sequence ${sequence}`)
    return cells
  }
}

const TOKEN_BYTES = 4

interface FakeState extends KeptState {
  readonly tokens: readonly number[]
}

interface FakeCells {
  read(sequence: number): Promise<readonly number[]>
  write(sequence: number, tokens: readonly number[]): Promise<void>
  length(sequence: number): number
}

/** Takes no more states than it says, and only those back that it gave and that were not released. */
class FakeStates implements SequenceStates {
  readonly statesMax: number
  readonly tokensMin: number
  readonly held = new Set<KeptState>()
  saves = 0
  bytesPeak = 0
  readonly #cells: FakeCells

  constructor(options: Pick<FakeDecoderOptions, "statesMax" | "stateTokensMin">, cells: FakeCells) {
    this.statesMax = options.statesMax ?? Number.POSITIVE_INFINITY
    this.tokensMin = options.stateTokensMin ?? 1
    this.#cells = cells
  }

  bytesOf(sequence: number): number {
    return this.#cells.length(sequence) * TOKEN_BYTES
  }

  async save(sequence: number, bytes: number): Promise<KeptState> {
    const state: FakeState = { bytes, tokens: await this.#cells.read(sequence) }
    assert.equal(bytes, state.tokens.length * TOKEN_BYTES)
    assert(state.tokens.length >= this.tokensMin, "a state that is not worth keeping")
    this.held.add(state)
    this.saves++
    assert(this.held.size <= this.statesMax, "more states than there are slots")
    this.bytesPeak = Math.max(
      this.bytesPeak,
      [...this.held].reduce((sum, kept) => sum + kept.bytes, 0),
    )
    return state
  }

  async restore(sequence: number, state: KeptState): Promise<void> {
    assert(this.held.has(state), "a state that was released")
    // Only `save` adds to the set, and it adds nothing but its own states.
    await this.#cells.write(sequence, (state as FakeState).tokens)
  }

  release(state: KeptState): void {
    assert(this.held.delete(state), "a state that was released before")
  }
}

/** Depends on every token and on their order. */
export function hashTokens(tokens: Iterable<number>): number {
  let hash = 17
  for (const token of tokens) hash = (Math.imul(hash, 31) + token + 1) | 0
  return hash
}
