/** Answers a choice as models are commonly asked to: all options in one prompt under letters, and the letter is read. */
import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp"
import { openLlama } from "../src/engine/generate/local-model.ts"
import type { EvaluationRow } from "./evaluation-rows.ts"

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
const CONTEXT_TOKENS = 4096

export class LabelReader {
  readonly #model: LlamaModel
  readonly #sequence: LlamaContextSequence

  private constructor(model: LlamaModel, sequence: LlamaContextSequence) {
    this.#model = model
    this.#sequence = sequence
  }

  static async open(modelFile: string, threads: number): Promise<LabelReader> {
    const { model } = await openLlama({ modelFile, threads, gpu: false })
    const context = await model.createContext({ sequences: 1, contextSize: CONTEXT_TOKENS, threads })
    return new LabelReader(model, context.getSequence())
  }

  /** The probability of each option's letter among all the letters, in the order given. */
  async read(row: EvaluationRow, options: readonly string[]): Promise<number[]> {
    const listed = options.map((option, place) => `${LETTERS[place]}. ${option}`).join("\n")
    const asked =
      `<|im_start|>user\n${row.text.trim()}\n\nQuestion: ${row.question}\n${listed}\n` +
      "Answer with the letter of the correct option.<|im_end|>\n<|im_start|>assistant\n"
    const tokens = this.#model.tokenize(asked, true)
    const last = tokens.pop()
    if (last === undefined) throw new Error("Cannot read a label: the prompt has no tokens")
    await this.#sequence.clearHistory()
    const outputs = await this.#sequence.controlledEvaluate([
      ...tokens,
      [last, { generateNext: { probabilities: true } }],
    ])
    const found = outputs.at(-1)?.next.probabilities
    if (found === undefined) throw new Error("Cannot read a label: the model gave no probabilities")
    const letters = options.map((_, place) => found.get(this.#letter(place)) ?? 0)
    const total = letters.reduce((sum, probability) => sum + probability, 0)
    return letters.map((probability) => probability / total)
  }

  #letter(place: number): Token {
    const [token] = this.#model.tokenize(LETTERS[place] ?? "")
    if (token === undefined) throw new RangeError(`no letter for option ${place}`)
    return token
  }

  async close(): Promise<void> {
    await this.#model.llama.dispose()
  }
}
