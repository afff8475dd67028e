/** The process that generates or embeds with one model. */
import { servePeer } from "../../base/peer/connection.ts"
import { Fault } from "../../contract/errors.ts"
import { type EngineService, type ModelEngines, engineHandlers } from "../engine-service.ts"
import type { GenerateEngine } from "../engine.ts"
import { openEmbedder } from "./embedding-model.ts"
import type { GenerationOptions } from "./local-model.ts"

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
  return options.kind === "generation"
    ? { generator: await openGenerator(options) }
    : { embedder: await openEmbedder(options) }
}

/** llama.cpp is loaded only for what needs it. */
async function openGenerator(options: GenerationOptions): Promise<Pick<GenerateEngine, "generate">> {
  const { LocalModel } = await import("./local-model.ts")
  const { Generation, prepareGeneration } = await import("./generation.ts")
  const model = await LocalModel.open(options)
  return {
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
  }
}
