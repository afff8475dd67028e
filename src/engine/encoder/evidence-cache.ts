/**
 * Keeps what evidence was read into, per organization, within a bound of bytes. Requests at work hold their evidence; what
 * none holds stays for the next request about it until its bytes are needed, least recently used first.
 */
import type { Graph, Past, Tokens } from "./graph.ts"

/** Entries of one organization that are compared with new evidence. */
const ENTRIES_PER_ORGANIZATION_MAX = 64

/** Evidence, read as far as `tokensRead`. Jobs about the same evidence share it and read it together. */
export interface Evidence {
  readonly organizationId: string
  readonly tokens: Tokens
  readonly past: Past
  tokensRead: number
  /** The sum of the last layer over what was read; empty before. */
  vector: Float32Array
}

interface Entry extends Evidence {
  holders: number
  usedAt: number
}

export class EvidenceCache {
  readonly #graph: Graph
  readonly #bytesMax: number
  readonly #organizations = new Map<string, Entry[]>()
  #bytes = 0
  #bytesHeld = 0
  #uses = 0

  constructor(graph: Graph, bytesMax: number) {
    this.#graph = graph
    this.#bytesMax = bytesMax
  }

  /** Of everything that is kept or held. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether a job about this evidence may start now. Alone it always may, however long its evidence is. */
  hasRoomFor(organizationId: string, tokens: Tokens): boolean {
    const known = this.#find(organizationId, tokens)
    if (known !== undefined && known.holders > 0) return true
    return this.#bytesHeld === 0 || this.#bytesHeld + this.#graph.bytesOf(tokens.length) <= this.#bytesMax
  }

  /** Finds or makes room for evidence; `release` ends what this begins. */
  hold(organizationId: string, tokens: Tokens): Evidence {
    const entry = this.#find(organizationId, tokens) ?? this.#add(organizationId, tokens)
    entry.usedAt = ++this.#uses
    if (entry.holders++ === 0) this.#bytesHeld += entry.past.bytes
    return entry
  }

  release(evidence: Evidence): void {
    const entry = this.#find(evidence.organizationId, evidence.tokens)
    if (entry === undefined || --entry.holders > 0) return
    this.#bytesHeld -= entry.past.bytes
    const isWhole = entry.tokensRead === entry.tokens.length
    if (!isWhole || entry.past.bytes > this.#bytesMax) this.#remove(entry)
  }

  /** Organizations never see each other's entries: how long an answer takes would tell what others have sent. */
  #find(organizationId: string, tokens: Tokens): Entry | undefined {
    return this.#organizations.get(organizationId)?.find((entry) => isSameTokens(entry.tokens, tokens))
  }

  #add(organizationId: string, tokens: Tokens): Entry {
    const bytes = this.#graph.bytesOf(tokens.length)
    const own = this.#organizations.get(organizationId) ?? []
    if (own.length >= ENTRIES_PER_ORGANIZATION_MAX) this.#removeOldest(own)
    while (this.#bytes + bytes > this.#bytesMax) {
      if (!this.#removeOldest([...this.#organizations.values()].flat())) break
    }
    const past = this.#graph.createPast(tokens.length)
    const progress = { tokensRead: 0, vector: new Float32Array() }
    const entry: Entry = { organizationId, tokens, past, ...progress, holders: 0, usedAt: 0 }
    const entries = this.#organizations.get(organizationId) ?? []
    this.#organizations.set(organizationId, entries)
    entries.push(entry)
    this.#bytes += past.bytes
    return entry
  }

  /** False when all are held. */
  #removeOldest(entries: readonly Entry[]): boolean {
    let oldest: Entry | undefined
    for (const entry of entries)
      if (entry.holders === 0 && (oldest === undefined || entry.usedAt < oldest.usedAt)) oldest = entry
    if (oldest === undefined) return false
    this.#remove(oldest)
    return true
  }

  #remove(entry: Entry): void {
    const entries = this.#organizations.get(entry.organizationId) ?? []
    entries.splice(entries.indexOf(entry), 1)
    if (entries.length === 0) this.#organizations.delete(entry.organizationId)
    this.#bytes -= entry.past.bytes
    this.#graph.releasePast(entry.past)
  }
}

export function isSameTokens(a: Tokens, b: Tokens): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}
