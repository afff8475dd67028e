/** An embedding model in this process: checks inputs, puts the model's frame around them and makes vectors of length one. */
import { setImmediate as nextTurn } from "node:timers/promises"
import type { Token } from "node-llama-cpp"
import { isEncoderFile } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import { type EmbedEngine, type EmbedInput, normalised } from "../engine.ts"
import { piecesOf } from "../text-pieces.ts"
import type { GenerationOptions } from "./local-model.ts"
import { openMinilm } from "./minilm.ts"

/** What the runtimes of embedding models have in common. */
export interface EmbeddingNetwork {
  readonly dimensions: number
  readonly contextTokensMax: number
  readonly vocabularySize: number
  /** Around the tokens of every input, unless it brings them. */
  readonly first: number | null
  readonly last: number | null
  /** Without the frame; text that looks like a special token is plain text. May end once there are more than `tokensMax`. */
  tokenize(text: string, tokensMax: number): readonly number[]
  vectorOf(tokens: readonly number[]): Promise<readonly number[]>
}

const CONTEXT_TOKENS_MAX = 8192
/** Tokenised before others of the process have a turn. */
const inputsPerTurn = 16

export async function openEmbedder(options: GenerationOptions): Promise<Pick<EmbedEngine, "embed">> {
  const network = isEncoderFile(options.modelFile)
    ? await openMinilm(options)
    : await openLlamaNetwork(options)
  return {
    async embed({ inputs, dimensions }, { admit, signal }) {
      if (dimensions !== null && dimensions > network.dimensions)
        throw new Fault(
          "invalid_request",
          `Cannot make vectors of ${dimensions} dimensions: the model has ${network.dimensions}`,
          { param: "dimensions" },
        )
      const tokens: (readonly number[])[] = []
      for (const [index, input] of inputs.entries()) {
        // Others of the process have their turns.
        if (index % inputsPerTurn === inputsPerTurn - 1) await nextTurn()
        signal.throwIfAborted()
        tokens.push(framedTokens(network, input, index))
      }
      const inputTokens = tokens.reduce((sum, one) => sum + one.length, 0)
      await admit(inputTokens)
      const vectors: Float32Array[] = []
      for (const one of tokens) {
        signal.throwIfAborted()
        const vector = await network.vectorOf(one)
        vectors.push(normalised(vector.slice(0, dimensions ?? vector.length)))
      }
      return { vectors, inputTokens }
    },
  }
}

function framedTokens(network: EmbeddingNetwork, input: EmbedInput, index: number): readonly number[] {
  const { first, last, contextTokensMax } = network
  const tokens = [
    ...(typeof input === "string"
      ? network.tokenize(input, contextTokensMax)
      : checkedIds(input, network.vocabularySize, index)),
  ]
  if (first !== null && tokens[0] !== first) tokens.unshift(first)
  if (last !== null && tokens.at(-1) !== last) tokens.push(last)
  if (tokens.length > contextTokensMax)
    throw new Fault(
      "context_length_exceeded",
      `Cannot embed input ${index}: it has ${tokens.length} tokens or more; the model's context is ${contextTokensMax} tokens`,
      { param: "input" },
    )
  return tokens
}

function checkedIds(ids: readonly number[], vocabularySize: number, index: number): readonly number[] {
  const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabularySize)
  if (wrong === undefined) return ids
  throw new Fault("invalid_request", `Cannot embed input ${index}: ${wrong} is not a token of the model`, {
    param: "input",
  })
}

/** A GGUF file, through node-llama-cpp. */
async function openLlamaNetwork(options: GenerationOptions): Promise<EmbeddingNetwork> {
  const { openLlama, tokenCharactersMax } = await import("./local-model.ts")
  const { model } = await openLlama(options)
  const charactersMax = tokenCharactersMax(model)
  const contextTokensMax = Math.min(model.trainContextSize, CONTEXT_TOKENS_MAX)
  // node-llama-cpp keeps one place free for a token that embeddings never have.
  const contextSize = contextTokensMax + 1
  const context = await model.createEmbeddingContext({
    contextSize,
    batchSize: contextSize,
    ...(options.threads === undefined ? {} : { threads: options.threads }),
  })
  const { bos, eos, sep, shouldPrependBosToken, shouldAppendEosToken } = model.tokens
  const { tokenizer } = model.fileInfo.metadata as {
    tokenizer?: { ggml?: { tokens?: readonly string[] } }
  }
  return {
    dimensions: model.embeddingVectorSize,
    contextTokensMax,
    vocabularySize: tokenizer?.ggml?.tokens?.length ?? 0,
    first: shouldPrependBosToken ? bos : null,
    last: sep ?? (shouldAppendEosToken ? eos : null),
    tokenize: (text, tokensMax) =>
      piecesOf(text.slice(0, (tokensMax + 1) * charactersMax)).flatMap((piece) =>
        model.tokenize(piece, false),
      ),
    // Token is a branded number; these are in the vocabulary.
    vectorOf: async (tokens) => (await context.getEmbeddingFor([...tokens] as Token[])).vector,
  }
}
