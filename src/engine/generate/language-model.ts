/** The engines of a language model in this process: it generates, and decides where its vocabulary lets it. */
import { Fault } from "../../contract/errors.ts"
import type { ModelEngines } from "../engine-service.ts"
import type { EngineStats, GenerateEngine, ModelFacts } from "../engine.ts"
import { Generation, prepareGeneration } from "./generation.ts"
import { type GenerationOptions, LocalModel } from "./local-model.ts"
import type { PromptLimits } from "./prompt-length.ts"
import { Scoring } from "./scoring.ts"

interface LanguageModel {
  readonly facts: ModelFacts
  readonly limits: PromptLimits
  readonly engines: ModelEngines
  /** Of its decisions. */
  stats(): EngineStats | undefined
}

export async function openLanguageModel(options: GenerationOptions): Promise<LanguageModel> {
  const model = await LocalModel.open(options)
  const { facts, contextTokensMax, tokenCharactersMax } = model
  let scoring: Scoring | undefined
  return {
    facts,
    limits: { contextTokensMax, tokenCharactersMax },
    engines: {
      generator: generatorOf(model),
      // Not every model that writes can also answer with one token, which is said when it is first asked.
      scorer: { score: async (work, call) => await (scoring ??= openScoring(model)).score(work, call) },
    },
    stats: () => scoring?.stats(),
  }
}

function openScoring(model: LocalModel): Scoring {
  try {
    return new Scoring(model)
  } catch (cause) {
    throw new Fault("inference_failed", cause instanceof Error ? cause.message : String(cause), { cause })
  }
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
