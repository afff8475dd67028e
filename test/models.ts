/** Where tests find models: the default one, and random ones that are made when first asked for. */
import { existsSync } from "node:fs"
import path from "node:path"
import type { RandomModelKind } from "../scripts/random-gguf.ts"
import { writeRandomModel } from "../scripts/random-gguf.ts"

const root = path.resolve(import.meta.dirname, "..")

/** The encoder that answers decisions. */
export const decisionModelFile = path.join(root, "model", "umpire-decide.onnx")
/** The language model that answers chat, and decisions more slowly. */
export const defaultModelFile = path.join(root, "model", "umpire-nano-q8_0.gguf")

/** Raised when the generator writes different files, so that none is served from an old cache. */
const GENERATION = 2

/** Path of a random model; made once and kept with the other caches of the installed packages. */
export function randomModel(kind: RandomModelKind): string {
  const file = path.join(root, "node_modules", ".cache", "umpire", `${kind}-${GENERATION}.gguf`)
  if (!existsSync(file)) writeRandomModel(kind, file)
  return file
}
