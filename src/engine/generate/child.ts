/** The process that has one model: it decides and generates with it, or embeds. */
import { servePeer } from "../../base/peer/serve.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineService, type ModelEngines, engineHandlers } from "../engine-service.ts"
import type { EngineStats, ModelFacts } from "../engine.ts"
import { openEmbedder } from "./embedding-model.ts"
import type { GenerationOptions } from "./local-model.ts"
import type { PromptLimits } from "./prompt-length.ts"

interface LoadedModel {
  readonly facts: ModelFacts
  readonly limits: PromptLimits
}

export interface GeneratorService extends EngineService {
  /** Null of a model that embeds. */
  open: { input: GenerationOptions; output: LoadedModel | null }
}

let engines: ModelEngines = {}
let stats = (): EngineStats | undefined => undefined

servePeer<GeneratorService>(
  {
    open: async (options) => {
      try {
        return await open(options)
      } catch (error) {
        process.stderr.write(`${String(error)}\n`)
        if (error instanceof Fault) throw error
        throw new Fault("inference_failed", "Cannot load the model: its file cannot be used")
      }
    },
    ...engineHandlers(() => engines),
  },
  { status: () => stats() },
)

async function open(options: GenerationOptions): Promise<LoadedModel | null> {
  if (options.kind === "embedding") {
    engines = { embedder: await openEmbedder(options) }
    return null
  }
  // llama.cpp is loaded only for what needs it.
  const { openLanguageModel } = await import("./language-model.ts")
  const model = await openLanguageModel(options)
  engines = model.engines
  stats = () => model.stats()
  const { facts, limits } = model
  return { facts, limits }
}
