/** The process that generates or embeds with one model. */
import { servePeer } from "../../base/peer/connection.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineService, type ModelEngines, engineHandlers } from "../engine-service.ts"
import { EmbeddingModel } from "./embedding-model.ts"
import type { EmbedEngine, GenerateEngine } from "../engine.ts"
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
    return { generator: generatorOf(model) }
  }
  const model = await EmbeddingModel.open(options)
  return { embedder: embedderOf(model) }
}

const generatorOf = (model: LocalModel): Pick<GenerateEngine, "generate"> => ({
  async *generate(work, { admit, signal, onUsage }) {
    const prepared = prepareGeneration(model, work)
    const { outputTokensMost, notEnforced } = prepared
    const outputTokensMax = await admit({
      inputTokensMost: prepared.tokens.length,
      outputTokensMost,
      notEnforced,
    })
    const generation = new Generation(model, prepared, outputTokensMax, signal)
    try {
      for await (const event of generation.run()) {
        onUsage(generation.usage())
        yield event
      }
    } finally {
      onUsage(generation.usage())
    }
  },
})

const embedderOf = (model: EmbeddingModel): Pick<EmbedEngine, "embed"> => ({
  async embed(work, { admit, signal }) {
    const inputs = model.prepare(work)
    await admit(inputs.inputTokens)
    return { vectors: await model.run(inputs, signal), inputTokens: inputs.inputTokens }
  },
})
