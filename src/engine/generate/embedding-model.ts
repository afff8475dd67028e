/** An embedding model in this process, through node-llama-cpp. */
import type { LlamaEmbeddingContext, LlamaModel, Token } from "node-llama-cpp"
import { Fault } from "../../contract/errors.ts"
import type { EmbedInput, EmbedWork } from "../engine.ts"
import { type GenerationOptions, openLlama } from "./local-model.ts"
import { piecesOf } from "../text-pieces.ts"
import { normalised } from "./vectors.ts"

export interface PreparedInputs {
  readonly tokens: readonly (readonly Token[])[]
  readonly dimensions: number | null
  readonly inputTokens: number
}

export class EmbeddingModel {
  readonly #model: LlamaModel
  readonly #context: LlamaEmbeddingContext
  readonly #contextTokensMax: number
  readonly #width: number

  static async open(options: GenerationOptions): Promise<EmbeddingModel> {
    const { model } = await openLlama(options)
    const contextTokensMax = Math.min(model.trainContextSize, CONTEXT_TOKENS_MAX)
    // node-llama-cpp keeps one place free for a token that embeddings never have.
    const contextSize = contextTokensMax + 1
    const context = await model.createEmbeddingContext({
      contextSize,
      batchSize: contextSize,
      ...(options.threads === undefined ? {} : { threads: options.threads }),
    })
    return new EmbeddingModel(model, context, contextTokensMax)
  }

  private constructor(model: LlamaModel, context: LlamaEmbeddingContext, contextTokensMax: number) {
    this.#model = model
    this.#context = context
    this.#contextTokensMax = contextTokensMax
    this.#width = model.embeddingVectorSize
  }

  prepare({ inputs, dimensions }: EmbedWork): PreparedInputs {
    if (dimensions !== null && dimensions > this.#width)
      throw new Fault(
        "invalid_request",
        `Cannot make vectors of ${dimensions} dimensions: the model has ${this.#width}`,
        { param: "dimensions" },
      )
    const tokens = inputs.map((input, index) => this.#tokens(input, index))
    return { tokens, dimensions, inputTokens: tokens.reduce((sum, one) => sum + one.length, 0) }
  }

  async run({ tokens, dimensions }: PreparedInputs, signal: AbortSignal): Promise<Float32Array[]> {
    const vectors: Float32Array[] = []
    for (const input of tokens) {
      signal.throwIfAborted()
      const { vector } = await this.#context.getEmbeddingFor([...input])
      vectors.push(normalised(vector.slice(0, dimensions ?? vector.length)))
    }
    return vectors
  }

  #tokens(input: EmbedInput, index: number): Token[] {
    const { model } = { model: this.#model }
    // Text that looks like a special token is plain text; the model's own frame is put around it.
    const inner =
      typeof input === "string"
        ? piecesOf(input).flatMap((piece) => model.tokenize(piece, false))
        : checkedIds(input, this.#vocabulary, index)
    const { bos, eos, sep, shouldPrependBosToken, shouldAppendEosToken } = model.tokens
    const tokens = [...inner]
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos)
    const last = sep ?? eos
    if ((shouldAppendEosToken || sep !== null) && last !== null && tokens.at(-1) !== last) tokens.push(last)
    if (tokens.length > this.#contextTokensMax)
      throw new Fault(
        "context_length_exceeded",
        `Cannot embed input ${index}: it has ${tokens.length} tokens; the model's context is ${this.#contextTokensMax} tokens`,
        { param: "input" },
      )
    return tokens
  }

  get #vocabulary(): number {
    const { tokenizer } = this.#model.fileInfo.metadata as {
      tokenizer?: { ggml?: { tokens?: readonly string[] } }
    }
    return tokenizer?.ggml?.tokens?.length ?? 0
  }
}

const CONTEXT_TOKENS_MAX = 8192

function checkedIds(ids: readonly number[], vocabulary: number, index: number): Token[] {
  const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary)
  if (wrong !== undefined)
    throw new Fault("invalid_request", `Cannot embed input ${index}: ${wrong} is not a token of the model`, {
      param: "input",
    })
  // Token is a branded number; these are in the vocabulary.
  return ids as unknown as Token[]
}
