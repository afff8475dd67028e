/** What encoders need of a tokenizer, and which one a model's file asks for. */
import type { EncoderFile } from "./model-file.ts"
import { Unigram } from "./unigram.ts"
import { WordPiece } from "./word-piece.ts"

export interface Tokenizer {
  readonly special: { readonly start: number; readonly separator: number; readonly unknown: number }
  encode(text: string): number[]
}

/** Throws RangeError when the vocabulary lacks a special token. */
export function openTokenizer({ vocabulary, scores }: EncoderFile): Tokenizer {
  return scores ? new Unigram(vocabulary, scores) : new WordPiece(vocabulary)
}
