/** The models of this machine and their engines, as the configuration wants them: how much memory they may take, and how long they stay. */
import { type Catalog, type Model, isEncoderFile } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { Loadable } from "../engine/cached-model.ts"
import { type EncoderEngine, startEncoderEngine } from "../engine/encoder/engine.ts"
import type { ScoreEngine } from "../engine/engine.ts"
import { LocalEngine } from "../engine/generate/local-engine.ts"
import { type LocalEngines, openLocalEngines } from "../engine/local-engines.ts"
import type { App } from "./app.ts"
import { catalogOptions, loadCatalog } from "./catalog.ts"
import { addEngineMetrics } from "./metrics.ts"
import { runsHere } from "./routing.ts"

const mebibyte = 1024 * 1024
const millisecondsPerSecond = 1_000

export interface LocalModels {
  readonly catalog: Catalog
  readonly engines: LocalEngines
  /** Resolves when the default model is loaded, where it runs in this machine. */
  loaded(): Promise<void>
}

/** The default model loads while the rest is opened, and a broken file is found now. */
export async function openModels({ config, clock, log, use, metrics, progress }: App): Promise<LocalModels> {
  const catalog = await loadCatalog(config.models, catalogOptions(config))
  const engines = use(openConfiguredEngines(config, clock, log))
  addEngineMetrics(metrics, engines)
  const loading = runsHere(config, catalog.fallback) ? engines.load(catalog.fallback) : undefined
  // Awaited later; until then a failure of something else must not make this one an unhandled rejection.
  loading?.catch(() => undefined)
  return {
    catalog,
    engines,
    loaded: async () => {
      if (loading) progress(`Loading ${catalog.fallback.sku}`)
      await loading
    },
  }
}

export function openConfiguredEngines(config: Config, clock: Clock, log: Log): LocalEngines {
  const { idle_unload_s, memory_budget_mib } = config.engine
  return openLocalEngines({
    startEncoder: async (model) => await startEncoder(config, model, log),
    openLanguageModel: (model) => openLanguageModel(config, model, log),
    memoryBytesMax: memory_budget_mib === undefined ? null : memory_budget_mib * mebibyte,
    idleMsMax: idle_unload_s === undefined ? null : idle_unload_s * millisecondsPerSecond,
    clock,
    log,
  })
}

/** Starts nothing yet: the process begins with the first request. */
function openLanguageModel(config: Config, model: Model, log: Log): LocalEngine {
  const { threads, kv_memory_mib, queue_max, gpu } = config.engine
  return new LocalEngine({
    modelFile: model.file,
    ...(model.adapter === undefined ? {} : { adapterFile: model.adapter }),
    kind: model.kind,
    memoryBytes: kv_memory_mib * mebibyte,
    waitingMax: queue_max,
    gpu: gpu !== "off",
    onDeath: (reason) => log.error({ model: model.sku, reason }, "the engine process died"),
    ...(threads === undefined ? {} : { threads }),
  })
}

async function startEncoder(config: Config, model: Model, log: Log): Promise<EncoderEngine> {
  const { threads, cache_memory_mib, queue_max, gpu } = config.engine
  return await startEncoderEngine({
    modelFile: model.file,
    gpu: gpu !== "off",
    cacheBytes: cache_memory_mib * mebibyte,
    waitingMax: queue_max,
    onDeath: (reason) => log.error({ model: model.sku, reason }, "the engine process died"),
    ...(threads === undefined ? {} : { threads }),
  })
}

/** The engine of a local model: ONNX files are encoders, all others language models for llama.cpp. */
export async function startEngine(config: Config, model: Model, log: Log): Promise<ScoreEngine & Loadable> {
  if (isEncoderFile(model.file)) return await startEncoder(config, model, log)
  return await loaded(openLanguageModel(config, model, log))
}

/** With default settings, for measurements. */
export async function openModelFile(modelFile: string): Promise<ScoreEngine> {
  if (isEncoderFile(modelFile)) return await startEncoderEngine({ modelFile })
  return await loaded(new LocalEngine({ modelFile, kind: "generation" }))
}

async function loaded(engine: LocalEngine): Promise<LocalEngine> {
  try {
    await engine.load()
    return engine
  } catch (error) {
    await engine.close()
    throw error
  }
}
