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
  readonly sequencesMax: number
  readonly batchTokensMax: number
  decode(batch: readonly BatchToken[]): Promise<void>
  /** After a decode: how much more the model leans to yes than to no, as a difference of log-sum-exps. */
  difference(batchIndex: number): number
  /** Lets `to` hold the cells of `from` at positions start to end (exclusive), without copying them. */
  copySequence(from: number, to: number, start: number, end: number): void
  /** Drops the cells of a sequence from a position on. */
  removeSequence(sequence: number, start: number): void
  saveSequence(sequence: number): Promise<Uint8Array>
  restoreSequence(sequence: number, state: Uint8Array): Promise<void>
}
