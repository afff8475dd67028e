/** Turns tokens into text as they come: characters that span tokens wait until they are whole. */
import type { LlamaModel, Token } from "node-llama-cpp"

/** A character has at most four bytes, and a byte may be a token. */
const PENDING_TOKENS_MAX = 8
const LAST_TOKENS = 4

export class TokenText {
  readonly #model: LlamaModel
  readonly #marks: ReadonlySet<string>
  #pending: Token[] = []
  #last: Token[] = []

  /** Special tokens are dropped, but for those that mark something the reader knows. */
  constructor(model: LlamaModel, marks: ReadonlySet<string>) {
    this.#model = model
    this.#marks = marks
  }

  next(token: Token): string {
    if (this.#pending.length === 0 && this.#model.isSpecialToken(token)) return this.#special(token)
    this.#pending.push(token)
    const text = this.#model.detokenize(this.#pending, false, this.#last)
    if (text.endsWith("\uFFFD") && this.#pending.length < PENDING_TOKENS_MAX) return ""
    this.#last = [...this.#last, ...this.#pending].slice(-LAST_TOKENS)
    this.#pending = []
    return text
  }

  /** Bytes that never became a character. */
  end(): string {
    const text = this.#pending.length === 0 ? "" : this.#model.detokenize(this.#pending, false, this.#last)
    this.#pending = []
    return text
  }

  #special(token: Token): string {
    this.#last = [...this.#last, token].slice(-LAST_TOKENS)
    const text = this.#model.detokenize([token], true)
    return this.#marks.has(text) ? text : ""
  }
}
