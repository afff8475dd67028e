/** The engines of this machine as the gateway and a worker use them: each is loaded when it is first used, and may leave in between. */
import { stat } from "node:fs/promises"
import type { Model } from "../base/catalog.ts"
import type { EngineReport } from "../base/fleet-report.ts"
import type { ModelEngines } from "./engine-service.ts"
import type { ScoreEngine } from "./engine.ts"
import type { LocalEngine } from "./generate/local-engine.ts"
import { Residency, type ResidencySettings } from "./residency.ts"
import { type Resident, residentEmbedder, residentGenerator, residentScorer } from "./resident.ts"

interface LocalEngineParts extends ResidencySettings {
  startScorer(model: Model): Promise<ScoreEngine>
  openGenerator(model: Model): LocalEngine
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

export function openLocalEngines(parts: LocalEngineParts): LocalEngines {
  const residency = new Residency(parts)
  const scorers = new Map<string, Resident<ScoreEngine>>()
  const generators = new Map<string, Resident<LocalEngine>>()

  const scorerOf = (model: Model): Resident<ScoreEngine> =>
    known(scorers, model.sku, () =>
      residency.add({
        model: model.sku,
        purpose: "decisions",
        estimate: async () => await estimate(model),
        load: async () => await parts.startScorer(model),
      }),
    )
  const generatorOf = (model: Model): Resident<LocalEngine> =>
    known(generators, model.sku, () =>
      residency.add({
        model: model.sku,
        purpose: "generation",
        estimate: async () => await estimate(model),
        load: async () => {
          const engine = parts.openGenerator(model)
          // Whoever then uses it is told what is wrong with it, and its supervisor says when it is tried again.
          await engine.load().catch(() => undefined)
          return engine
        },
      }),
    )
  const open = new Map<string, ScoreEngine>()
  const scorer = (model: Model): ScoreEngine => known(open, model.sku, () => residentScorer(scorerOf(model)))
  return {
    of: (model) =>
      model.kind === "embedding"
        ? { embedder: residentEmbedder(generatorOf(model)) }
        : { scorer: scorer(model), generator: residentGenerator(generatorOf(model)) },
    scorer,
    load: async (model) => (await scorerOf(model).use()).release(),
    loadedScorers: () =>
      new Map(
        [...scorers].flatMap(([sku, { engine }]): [string, ScoreEngine][] => (engine ? [[sku, engine]] : [])),
      ),
    report: () => residency.report(),
    close: async () => await residency.close(),
  }
}

function known<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make()
  values.set(key, value)
  return value
}

/** A file that is made when it is first used is small. */
async function estimate({ file }: Model): Promise<number> {
  const bytes = await stat(file).then(
    ({ size }) => size,
    () => 0,
  )
  return bytes + processBytes
}
