/** What the scheduler asks of a model's context: sequences over shared cells, and decodes of small batches. */

export interface BatchToken {
  readonly token: number
  readonly position: number
  /** Every sequence that this token belongs to; all of them hold the same tokens before it. */
  readonly sequences: readonly number[]
  /** Whether the logits after this token are to be read. */
  readonly output: boolean
}

/** Calls never overlap: the next one starts when the last has settled. */
export interface Decoder {
  readonly cellsMax: number
  /** How many of them one organization best fills at one time: more slow every decode down. */
  readonly cellsUseful: number
  readonly sequencesMax: number
  readonly batchTokensMax: number
  readonly states: SequenceStates
  decode(batch: readonly BatchToken[]): Promise<void>
  /** After a decode: how much more the model leans to yes than to no, as a difference of log-sum-exps. */
  difference(batchIndex: number): number
  /** Lets `to` hold the cells of `from` at positions start to end (exclusive), without copying them. */
  copySequence(from: number, to: number, start: number, end: number): void
  /** Drops the cells of a sequence from a position on. */
  removeSequence(sequence: number, start: number): void
  /** Drops the cells of every sequence. */
  clear(): void
}

/** An evaluated sequence outside the cells; only the decoder that saved it can read it. */
export interface KeptState {
  readonly bytes: number
}

/** Keeps evaluated sequences outside the cells, wherever that is. Its calls are the decoder's: they never overlap. */
export interface SequenceStates {
  /** How many can be held at one time. */
  readonly statesMax: number
  /** A sequence of fewer tokens costs less to evaluate again than to keep. */
  readonly tokensMin: number
  bytesOf(sequence: number): number
  /** `bytes` is what `bytesOf` answers for this sequence. */
  save(sequence: number, bytes: number): Promise<KeptState>
  /** Into a sequence that holds nothing. */
  restore(sequence: number, state: KeptState): Promise<void>
  /** Gives up a state: it is never restored after this. */
  release(state: KeptState): void
}
