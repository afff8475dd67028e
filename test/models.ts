/** Where tests find models: the default one, and random ones that are made when first asked for. */
import { existsSync } from "node:fs"
import path from "node:path"
import { readGgufFileInfo } from "node-llama-cpp"
import type { RandomModelKind } from "../scripts/random-gguf.ts"
import { writeRandomModel } from "../scripts/random-gguf.ts"

const root = path.resolve(import.meta.dirname, "..")

/** The encoder that answers decisions. */
export const baseDecisionModelFile = path.join(root, "model", "umpire-decide.onnx")
/** The small one, for tests that need any. */
export const decisionModelFile = path.join(root, "model", "umpire-decide-small.onnx")
/** The one for many languages, in a package of its own. */
export const multilingualModelFile = path.join(
  root,
  "packages",
  "umpire-decide-multilingual",
  "umpire-decide-multilingual.onnx",
)
/** The language model that answers chat, and decisions more slowly. */
export const defaultModelFile = path.join(root, "model", "smollm2-135m-instruct.gguf")

/** Raised when the generator writes different files, so that none is served from an old cache. */
const GENERATION = 2

/** Path of a random model; made once and kept with the other caches of the installed packages. */
export function randomModel(kind: RandomModelKind): string {
  const file = path.join(root, "node_modules", ".cache", "umpire", `${kind}-${GENERATION}.gguf`)
  if (!existsSync(file)) writeRandomModel(kind, file)
  return file
}

/** A random model that writes in the tokens of the default one. */
export async function randomChatModel(): Promise<string> {
  const file = path.join(root, "node_modules", ".cache", "umpire", `chat-vocabulary-${GENERATION}.gguf`)
  if (existsSync(file)) return file
  const { metadata } = await readGgufFileInfo(defaultModelFile, { logWarnings: false })
  const { tokens, token_type: types, merges, eos_token_id: endOfTurn } = metadata.tokenizer.ggml
  writeRandomModel("micro-short", file, 1, {
    tokens,
    types: types ?? [],
    merges: merges ?? [],
    endOfText: metadata.tokenizer.ggml.bos_token_id ?? endOfTurn ?? 0,
    endOfTurn: endOfTurn ?? 0,
  })
  return file
}
