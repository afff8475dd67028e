/** The engines of this machine as the gateway and a worker use them: each is loaded when it is first used, and may leave in between. */
import { stat } from "node:fs/promises"
import { type Model, isEncoderFile } from "../base/catalog.ts"
import type { EngineReport } from "../contract/fleet-report.ts"
import type { ModelEngines } from "./engine-service.ts"
import {
  type CachedModel,
  cachedEmbedder,
  cachedGenerator,
  cachedScorer,
  type Loadable,
  type ModelSource,
} from "./cached-model.ts"
import type { ScoreEngine } from "./engine.ts"
import type { LocalEngine } from "./generate/local-engine.ts"
import { ModelCache, type ModelCacheSettings } from "./model-cache.ts"

interface LocalEngineDeps extends ModelCacheSettings {
  startEncoder(model: Model): Promise<ScoreEngine>
  /** One that decides and generates, or embeds. */
  openLanguageModel(model: Model): LocalEngine
}

export interface LocalEngines {
  /** What a model that runs in this machine can do; it either scores and generates, or embeds. */
  of(model: Model): ModelEngines
  scorer(model: Model): ScoreEngine
  /** Rejects with a clear sentence where a decision model cannot be loaded. */
  load(model: Model): Promise<void>
  /** The scorers that are in memory, by SKU. */
  loadedScorers(): ReadonlyMap<string, ScoreEngine>
  /** What is in memory, or was. */
  report(): readonly EngineReport[]
  close(): Promise<void>
}

/** A process without a model. */
const processBytes = 64 * 1024 * 1024

export function openLocalEngines(deps: LocalEngineDeps): LocalEngines {
  const cache = new ModelCache(deps)
  const encoders = new Map<string, CachedModel<ScoreEngine>>()
  const languageModels = new Map<string, CachedModel<LocalEngine>>()

  const cached = <Engine extends Loadable>(
    models: Map<string, CachedModel<Engine>>,
    { sku, file }: Model,
    source: Pick<ModelSource<Engine>, "purpose" | "load">,
  ): CachedModel<Engine> =>
    known(models, sku, () => cache.add({ model: sku, estimate: async () => await estimate(file), ...source }))
  const encoderOf = (model: Model): CachedModel<ScoreEngine> =>
    cached(encoders, model, { purpose: "decisions", load: async () => await deps.startEncoder(model) })
  const languageModelOf = (model: Model): CachedModel<LocalEngine> =>
    cached(languageModels, model, {
      purpose: "generation",
      load: async () => {
        const engine = deps.openLanguageModel(model)
        // The work that then uses it fails with what is wrong with it; its supervisor decides when it is tried again.
        await engine.load().catch(() => undefined)
        return engine
      },
    })
  const scorerOf = (model: Model): CachedModel<ScoreEngine> =>
    isEncoderFile(model.file) ? encoderOf(model) : languageModelOf(model)
  const open = new Map<string, ScoreEngine>()
  const scorer = (model: Model): ScoreEngine => known(open, model.sku, () => cachedScorer(scorerOf(model)))
  return {
    of: (model) =>
      model.kind === "embedding"
        ? { embedder: cachedEmbedder(languageModelOf(model)) }
        : { scorer: scorer(model), generator: cachedGenerator(languageModelOf(model)) },
    scorer,
    load: async (model) => void (await scorerOf(model).using(async (engine) => await engine.facts())),
    loadedScorers: () =>
      new Map(
        [...languageModels, ...encoders].flatMap(([sku, { engine }]): [string, ScoreEngine][] =>
          engine ? [[sku, engine]] : [],
        ),
      ),
    report: () => cache.report(),
    close: async () => await cache.close(),
  }
}

function known<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make()
  values.set(key, value)
  return value
}

/** A file whose weights lie elsewhere suggests too little; what its process takes is measured once it runs. */
async function estimate(file: Model["file"]): Promise<number> {
  const bytes = await stat(file).then(
    ({ size }) => size,
    () => 0,
  )
  return bytes + processBytes
}
