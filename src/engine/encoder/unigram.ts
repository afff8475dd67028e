/**
 * The tokenizer of encoders for many languages: Unigram, as SentencePiece splits text. Of all ways to put a word together from pieces
 * it takes the likeliest. Every step is linear in the length of the text.
 */
import type { Tokenizer } from "./tokenizer.ts"
import { Memo } from "../../base/memo.ts"

/** Stands for the space before a word. */
const SPACE = "\u2581"
/** A character without a piece scores so much less than the rarest piece. */
const UNKNOWN_PENALTY = 10
const ASCII = /^[\t\n\f\r\x20-\x7e]*$/
/** What is read as a space beside what NFKC makes one: line ends, what has no width, marks of direction, what cannot be read. */
const BLANKS = /[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/gu
/** Control characters, which are dropped, and the wide tilde, which stays: NFKC is of what stands between them. */
// oxlint-disable-next-line no-control-regex
const APART = /([\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]|\uff5e)/u
/** Every mark, or later part of a Korean syllable, and what stands before it, which may be one too. */
const MARKED = /(?<=([^]))[\p{M}\u1160-\u11ff]/gu
const WIDE_TILDE = "\uff5e"

export class Unigram implements Tokenizer {
  readonly special: Tokenizer["special"]
  readonly #trie: PieceTrie
  readonly #scores: Float32Array
  readonly #unknownScore: number
  readonly #memo = new Memo((word) => this.#split(word))

  /** Pieces in the order of their ids, each with the logarithm of its probability; special tokens have 0 and stand for no text. */
  constructor(pieces: readonly string[], scores: Float32Array) {
    if (pieces.length !== scores.length)
      throw new RangeError(`its vocabulary has ${pieces.length} pieces and ${scores.length} scores`)
    const named = (token: string): number => {
      const id = pieces.indexOf(token)
      if (id < 0 || scores[id] !== 0) throw new RangeError(`its vocabulary has no token ${token}`)
      return id
    }
    this.special = { start: named("<s>"), separator: named("</s>"), unknown: named("<unk>") }
    this.#trie = new PieceTrie(pieces, scores)
    this.#scores = scores
    this.#unknownScore = scores.reduce((least, score) => Math.min(least, score), 0) - UNKNOWN_PENALTY
  }

  encode(text: string): number[] {
    const ids: number[] = []
    for (const word of normalize(text).split(" "))
      if (word !== "") for (const id of this.#memo.get(SPACE + word)) ids.push(id)
    return ids
  }

  /** Viterbi: of each place the best score of what ends there, and the piece that ends it. */
  #split(word: string): readonly number[] {
    // Of 32 bits, as the reference has them: which of two equal ways wins hangs on what is rounded off.
    const best = new Float32Array(word.length + 1).fill(-Infinity)
    const starts = new Int32Array(word.length + 1)
    const pieces = new Int32Array(word.length + 1)
    const offer = (start: number, end: number, { id, score }: { id: number; score: number }): void => {
      const sum = Math.fround((best[start] ?? 0) + score)
      if (sum <= (best[end] ?? 0)) return
      best[end] = sum
      starts[end] = start
      pieces[end] = id
    }
    best[0] = 0
    const { unknown } = this.special
    for (let start = 0; start < word.length;) {
      const next = start + ((word.codePointAt(start) ?? 0) > 0xffff ? 2 : 1)
      let isKnown = false
      for (let node = ROOT, at = start; at < word.length;) {
        node = this.#trie.child(node, word.charCodeAt(at++))
        if (node === NONE) break
        const id = this.#trie.pieceAt(node)
        if (id === NO_PIECE) continue
        if (at === next) isKnown = true
        offer(start, at, { id, score: this.#scores[id] ?? 0 })
      }
      if (!isKnown) offer(start, next, { id: unknown, score: this.#unknownScore })
      start = next
    }
    const ids: number[] = []
    for (let end = word.length; end > 0; end = starts[end] ?? 0) {
      const id = pieces[end] ?? unknown
      // Neighbours without a piece are one unknown token.
      if (id !== unknown || ids.at(-1) !== unknown) ids.push(id)
    }
    return ids.toReversed()
  }
}

/** Whether a mark stays by itself: where Unicode's order is another one, and after a character that stands for several. */
const isApart = new Memo((pair) => {
  const [before = "", mark = ""] = pair
  const [own, both] = [before.normalize("NFKD"), pair.normalize("NFKD")]
  return Array.from(own).length > 1 || both !== own + mark.normalize("NFKD")
})

const [NONE, ROOT, NO_PIECE] = [0, 1, -1]
const FIRST_NODE = 2

/** A node is a slot of one hash table, found by its parent and a UTF-16 unit: hundreds of thousands of them are three arrays. */
class PieceTrie {
  readonly #parents: Int32Array
  readonly #units: Uint16Array
  readonly #pieces: Int32Array

  constructor(pieces: readonly string[], scores: Float32Array) {
    const units = pieces.reduce((sum, { length }) => sum + length, 0)
    const size = 2 ** Math.ceil(Math.log2(1.5 * units + 1))
    this.#parents = new Int32Array(size)
    this.#units = new Uint16Array(size)
    this.#pieces = new Int32Array(size).fill(NO_PIECE)
    for (const [id, piece] of pieces.entries()) if (scores[id] !== 0) this.#add(piece, id)
  }

  #add(piece: string, id: number): void {
    let node = ROOT
    for (let at = 0; at < piece.length; at++) {
      const slot = this.#slotOf(node, piece.charCodeAt(at))
      this.#parents[slot] = node
      this.#units[slot] = piece.charCodeAt(at)
      node = slot + FIRST_NODE
    }
    if (node !== ROOT) this.#pieces[node - FIRST_NODE] = id
  }

  child(node: number, unit: number): number {
    const slot = this.#slotOf(node, unit)
    return this.#parents[slot] === NONE ? NONE : slot + FIRST_NODE
  }

  pieceAt = (node: number): number => this.#pieces[node - FIRST_NODE] ?? NO_PIECE

  /** That of this child, or the free one where it would be. */
  #slotOf(node: number, unit: number): number {
    const mask = this.#parents.length - 1
    const hash = Math.imul(Math.imul(node, 0x9e3779b1) ^ unit, 0x85ebca6b)
    let slot = (hash ^ (hash >>> 15)) & mask
    while (this.#parents[slot] !== NONE && (this.#parents[slot] !== node || this.#units[slot] !== unit))
      slot = (slot + 1) & mask
    return slot
  }
}

/** As the rules nmt_nfkc of SentencePiece do: a space where the text has one or something like it, and no two forms of one character. */
function normalize(text: string): string {
  if (ASCII.test(text)) return text.replace(/[\t\n\f\r]/g, " ")
  const parts = text.toWellFormed().replace(BLANKS, " ").split(APART)
  return parts
    .map((part, index) => (index % 2 === 0 ? composed(part) : part === WIDE_TILDE ? part : ""))
    .join("")
}

/** NFKC that leaves marks where they were written: vowels of Hebrew and Arabic are not in Unicode's order. */
function composed(text: string): string {
  let [made, from] = ["", 0]
  for (const { 0: mark, 1: before = "", index } of text.matchAll(MARKED)) {
    if (!isApart.get(before + mark)) continue
    made += text.slice(from, index).normalize("NFKC")
    from = index
  }
  return made + text.slice(from).normalize("NFKC")
}
