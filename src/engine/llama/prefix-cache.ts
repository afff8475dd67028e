/**
 * Keeps the evaluated state of recent prefixes, per organization.
 *
 * States are kept outside the cells of the context so that an idle engine always starts a job on empty cells: attention
 * sums in the order of the cells, and an answer that depended on where its cells lay would change with what ran before.
 */
import type { KeptState, SequenceStates } from "./decoder.ts"
import { sharedLength } from "./trie.ts"

/** Entries of one organization that are compared with a new prefix. */
const ENTRIES_PER_ORGANIZATION_MAX = 64

interface Entry {
  readonly tokens: Int32Array
  readonly state: KeptState
  usedAt: number
}

interface CachedPrefix {
  readonly state: KeptState
  /** Tokens in the state. */
  readonly tokensHeld: number
  /** How many of them, from the start, may be kept for the new prefix. */
  readonly tokensReused: number
}

export class PrefixCache {
  readonly #states: SequenceStates
  readonly #bytesMax: number
  readonly #chunkTokens: number
  readonly #entries = new Map<string, Entry[]>()
  #count = 0
  #bytes = 0
  #uses = 0

  constructor(states: SequenceStates, bytesMax: number, chunkTokens: number) {
    this.#states = states
    this.#bytesMax = bytesMax
    this.#chunkTokens = chunkTokens
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Organizations never see each other's entries: how long an answer takes would tell what others have sent. */
  find(organizationId: string, prefix: Int32Array): CachedPrefix | undefined {
    let best: Entry | undefined
    let reused = 0
    for (const entry of this.#entries.get(organizationId) ?? []) {
      const tokens = this.#reusable(entry.tokens, prefix)
      if (tokens > reused) {
        best = entry
        reused = tokens
      }
    }
    if (best === undefined) return undefined
    best.usedAt = ++this.#uses
    return { state: best.state, tokensHeld: best.tokens.length, tokensReused: reused }
  }

  /** A part of a prefix is reused in whole chunks: the rest is then decoded in the very shapes of a first request. */
  #reusable(held: Int32Array, prefix: Int32Array): number {
    const shared = sharedLength(held, prefix)
    if (shared === held.length && shared === prefix.length) return shared
    return Math.floor(shared / this.#chunkTokens) * this.#chunkTokens
  }

  /** Whether it is worth the time that saving takes. */
  wants(organizationId: string, prefix: Int32Array): boolean {
    if (this.#bytesMax === 0 || prefix.length < this.#states.tokensMin) return false
    const entries = this.#entries.get(organizationId) ?? []
    return !entries.some(
      ({ tokens }) => tokens.length === prefix.length && sharedLength(tokens, prefix) === prefix.length,
    )
  }

  /** Saves a sequence that holds exactly these tokens; room is made before, so that memory never exceeds its bound. */
  async keep(organizationId: string, tokens: Int32Array, sequence: number): Promise<void> {
    const bytes = this.#states.bytesOf(sequence)
    if (bytes > this.#bytesMax || this.#states.statesMax < 1) return
    const held = this.#entries.get(organizationId) ?? []
    if (held.length >= ENTRIES_PER_ORGANIZATION_MAX) this.#drop(organizationId, oldest(held))
    while (this.#bytes + bytes > this.#bytesMax || this.#count >= this.#states.statesMax) this.#dropOldest()
    const state = await this.#states.save(sequence, bytes)
    const entries = this.#entries.get(organizationId) ?? []
    this.#entries.set(organizationId, entries)
    entries.push({ tokens, state, usedAt: ++this.#uses })
    this.#bytes += state.bytes
    this.#count++
  }

  #dropOldest(): void {
    let victim: { organizationId: string; entry: Entry } | undefined
    for (const [organizationId, entries] of this.#entries) {
      const entry = oldest(entries)
      if (entry !== undefined && (victim === undefined || entry.usedAt < victim.entry.usedAt)) {
        victim = { organizationId, entry }
      }
    }
    if (victim !== undefined) this.#drop(victim.organizationId, victim.entry)
  }

  #drop(organizationId: string, entry: Entry | undefined): void {
    const entries = this.#entries.get(organizationId)
    if (entries === undefined || entry === undefined) return
    entries.splice(entries.indexOf(entry), 1)
    this.#bytes -= entry.state.bytes
    this.#count--
    this.#states.release(entry.state)
    if (entries.length === 0) this.#entries.delete(organizationId)
  }
}

function oldest(entries: readonly Entry[]): Entry | undefined {
  let first: Entry | undefined
  for (const entry of entries) if (first === undefined || entry.usedAt < first.usedAt) first = entry
  return first
}
