/** The process that generates or embeds with one model. */
import { servePeer } from "../../base/peer/connection.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineService, type ModelEngines, engineHandlers } from "../engine-service.ts"
import { EmbeddingModel } from "./embedding-model.ts"
import {
  type EmbedWork,
  type GenerateWork,
  noGenerationUsage,
  type PreparedEmbedding,
  type PreparedGeneration,
} from "../engine.ts"
import { Generation, prepareGeneration } from "./generation.ts"
import { type GenerationOptions, LocalModel } from "./local-model.ts"

export interface GeneratorService extends EngineService {
  open: { input: GenerationOptions; output: null }
}

let engines: ModelEngines = {}

servePeer<GeneratorService>({
  open: async (options) => {
    try {
      engines = await openEngines(options)
      return null
    } catch (error) {
      process.stderr.write(`${String(error)}\n`)
      throw new Fault("inference_failed", "Cannot load the model: its file cannot be used")
    }
  },
  ...engineHandlers(() => engines),
})

async function openEngines(options: GenerationOptions): Promise<ModelEngines> {
  if (options.kind === "generation") {
    const model = await LocalModel.open(options)
    return { generator: { prepare: async (work) => generationOf(model, work) } }
  }
  const model = await EmbeddingModel.open(options)
  return { embedder: { prepare: async (work) => embeddingOf(model, work) } }
}

function generationOf(model: LocalModel, work: GenerateWork): PreparedGeneration {
  const prepared = prepareGeneration(model, work)
  let generation: Generation | undefined
  return {
    inputTokensMost: prepared.tokens.length,
    outputTokensMost: prepared.outputTokensMost,
    notEnforced: prepared.notEnforced,
    run: (outputTokensMax, signal) => {
      generation = new Generation(model, prepared, outputTokensMax, signal)
      return generation.run()
    },
    usage: () => generation?.usage() ?? noGenerationUsage,
    discard: () => undefined,
  }
}

function embeddingOf(model: EmbeddingModel, work: EmbedWork): PreparedEmbedding {
  const inputs = model.prepare(work)
  return {
    inputTokens: inputs.inputTokens,
    run: async (signal) => await model.run(inputs, signal),
    discard: () => undefined,
  }
}
