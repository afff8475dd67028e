/** Lends sequence numbers to the leaves of groups, keeping a job's prefix in those it has used before. */
import type { Decoder } from "./decoder.ts"

/** llama.cpp keeps about 45 bytes for each cell that a sequence holds: this bounds them to about 190 MB. */
const HELD_CELLS_MAX = 4 * 1024 * 1024
const LEAVES_PER_JOB_MIN = 4

/** The job that holds a sequence: its trunk holds the prefix that the leaves start from. */
export interface LeafHolder {
  readonly trunk: number
  readonly prefixTokens: number
}

interface Leaf {
  readonly sequence: number
  holder: LeafHolder | undefined
  lent: boolean
}

export class LeafSequences {
  readonly #leaves: Leaf[]
  readonly #memory: Pick<Decoder, "copySequence" | "removeSequence">

  constructor(memory: Pick<Decoder, "copySequence" | "removeSequence">, first: number, count: number) {
    this.#memory = memory
    this.#leaves = Array.from({ length: count }, (_, index) => ({
      sequence: first + index,
      holder: undefined,
      lent: false,
    }))
  }

  /** How many leaves a job may have in one decode: copying a very long prefix to many sequences costs memory. */
  limitFor(holder: LeafHolder): number {
    const byPrefix = Math.max(
      LEAVES_PER_JOB_MIN,
      Math.floor(HELD_CELLS_MAX / Math.max(1, holder.prefixTokens)),
    )
    return Math.min(byPrefix, this.#leaves.length)
  }

  get available(): number {
    return this.#leaves.reduce((count, leaf) => count + (leaf.lent ? 0 : 1), 0)
  }

  /** A sequence that holds the holder's prefix and, past it, the trunk's tokens up to `end`. */
  lend(holder: LeafHolder, end: number): number {
    const leaf =
      this.#leaves.find((candidate) => !candidate.lent && candidate.holder === holder) ??
      this.#leaves.find((candidate) => !candidate.lent && candidate.holder === undefined) ??
      this.#leaves.find((candidate) => !candidate.lent)
    if (leaf === undefined) throw new RangeError("every leaf sequence is lent")
    if (leaf.holder !== holder) {
      if (leaf.holder !== undefined) this.#memory.removeSequence(leaf.sequence, 0)
      this.#memory.copySequence(holder.trunk, leaf.sequence, 0, end)
      leaf.holder = holder
    } else if (end > holder.prefixTokens) {
      this.#memory.copySequence(holder.trunk, leaf.sequence, holder.prefixTokens, end)
    }
    leaf.lent = true
    return leaf.sequence
  }

  /** Takes every lent sequence back; each keeps its holder's prefix for the next group. */
  giveBackAll(): void {
    for (const leaf of this.#leaves) {
      if (!leaf.lent) continue
      leaf.lent = false
      if (leaf.holder !== undefined) this.#memory.removeSequence(leaf.sequence, leaf.holder.prefixTokens)
    }
  }

  /** Forgets a job that has ended. */
  release(holder: LeafHolder): void {
    for (const leaf of this.#leaves) {
      if (leaf.holder !== holder) continue
      this.#memory.removeSequence(leaf.sequence, 0)
      leaf.holder = undefined
      leaf.lent = false
    }
  }

  heldBy(holder: LeafHolder): number {
    return this.#leaves.reduce((count, leaf) => count + (leaf.holder === holder ? 1 : 0), 0)
  }

  /** Lets a job have what another held, whose prefix is the same. */
  handOver(from: LeafHolder, to: LeafHolder): void {
    for (const leaf of this.#leaves) if (leaf.holder === from) leaf.holder = to
  }

  /** After all cells were emptied. */
  invalidateAll(): void {
    for (const leaf of this.#leaves) {
      leaf.holder = undefined
      leaf.lent = false
    }
  }
}
