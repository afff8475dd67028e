/** What encoders need of a tokenizer, which one a model's file asks for, and that of encoders for English. */
import { Memo } from "../../base/memo.ts"
import type { EncoderFile } from "./model-file.ts"
import { Unigram } from "./unigram.ts"

export interface Tokenizer {
  readonly special: { readonly start: number; readonly separator: number; readonly unknown: number }
  encode(text: string): number[]
}

/** Throws RangeError when the vocabulary lacks a special token. */
export function openTokenizer({ vocabulary, scores }: EncoderFile): Tokenizer {
  return scores ? new Unigram(vocabulary, scores) : new WordPiece(vocabulary)
}

/** Longer words are unknown as a whole, as in training. */
const WORD_CHARACTERS_MAX = 100

const ASCII = /^[\t\n\r\x20-\x7e]*$/
/** Control, format, private-use and replacement characters are dropped; tab and line ends are spaces. */
const DROPPED = /\ufffd|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu
const NONSPACING_MARK = /\p{Mn}/gu
/** Every CJK ideograph is a word. */
const IDEOGRAPH =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu
/** A word is a punctuation mark, or a run of characters that are neither punctuation nor space. */
const WORD = /[!-/:-@[-`{-~\p{P}]|[^\s\p{White_Space}!-/:-@[-`{-~\p{P}]+/gu

/** The tokenizer of encoders for English: uncased WordPiece. */
export class WordPiece implements Tokenizer {
  readonly special: Tokenizer["special"]
  readonly #initial = new Map<string, number>()
  readonly #continuing = new Map<string, number>()
  readonly #memo = new Memo((word) => this.#split(word))

  /** The vocabulary in the order of its ids; throws RangeError when it lacks a special token. */
  constructor(vocabulary: readonly string[]) {
    for (const [id, token] of vocabulary.entries()) {
      if (token.startsWith("##")) this.#continuing.set(token.slice(2), id)
      this.#initial.set(token, id)
    }
    const named = (token: string): number => {
      const id = this.#initial.get(token)
      if (id === undefined) throw new RangeError(`its vocabulary has no token ${token}`)
      return id
    }
    this.special = { start: named("[CLS]"), separator: named("[SEP]"), unknown: named("[UNK]") }
  }

  encode(text: string): number[] {
    const ids: number[] = []
    for (const [word] of normalize(text).matchAll(WORD)) for (const id of this.#memo.get(word)) ids.push(id)
    return ids
  }

  /** Greedy: the longest token that the rest of the word starts with, until nothing is left. */
  #split(word: string): readonly number[] {
    // A character has at most two units.
    if (word.length > 2 * WORD_CHARACTERS_MAX) return [this.special.unknown]
    const characters = Array.from(word)
    if (characters.length > WORD_CHARACTERS_MAX) return [this.special.unknown]
    const ids: number[] = []
    for (let start = 0; start < characters.length;) {
      const found = this.#longest(characters, start)
      if (found === undefined) return [this.special.unknown]
      ids.push(found.id)
      start = found.end
    }
    return ids
  }

  #longest(characters: readonly string[], start: number): { id: number; end: number } | undefined {
    const tokens = start === 0 ? this.#initial : this.#continuing
    for (let end = characters.length; end > start; end--) {
      const id = tokens.get(characters.slice(start, end).join(""))
      if (id !== undefined) return { id, end }
    }
    return undefined
  }
}

/** Pieces of about so many characters that end before a blank, so that their tokens are those of the whole text. */
export function* textPieces(text: string, charactersMin: number): Generator<string> {
  for (let start = 0; start < text.length;) {
    const blank = text.slice(start + charactersMin).search(/[ \t\n\r]/u)
    const end = blank < 0 ? text.length : start + charactersMin + blank
    yield text.slice(start, end)
    start = end
  }
}

function normalize(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  const cleaned = text.toWellFormed().replace(DROPPED, "").replace(IDEOGRAPH, " $& ")
  const unaccented = cleaned.normalize("NFD").replace(NONSPACING_MARK, "")
  // Character by character: lower-casing a whole text would turn the last sigma of a word into its final form.
  return Array.from(unaccented, (character) => character.toLowerCase()).join("")
}
