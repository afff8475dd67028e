/** Opens the engine of a model when it is first used, and closes all of them together. */
import { type Model, isEncoderFile } from "../base/catalog.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { ScoreEngine } from "../engine/engine.ts"
import { startEncoderEngine } from "../engine/encoder/engine.ts"
import { startLlamaEngine } from "../engine/llama/llama-engine.ts"

const mebibyte = 1024 * 1024

/** The engines of one kind in this machine. */
export interface Engines<Engine = ScoreEngine> {
  /** Opens the model when it is first asked for. */
  open(model: Model): Promise<Engine>
  close(): Promise<void>
}

export function createEngines<Engine extends { close(): Promise<void> }>(
  open: (model: Model) => Promise<Engine>,
): Engines<Engine> {
  const opened = new Map<string, Promise<Engine>>()
  return {
    open(model) {
      const known = opened.get(model.sku)
      if (known) return known
      const opening = open(model)
      opened.set(model.sku, opening)
      // A file that cannot be loaded now may be mended by the time of the next request.
      opening.catch(() => opened.delete(model.sku))
      return opening
    },
    async close() {
      const settled = await Promise.allSettled(opened.values())
      for (const opening of settled) if (opening.status === "fulfilled") await opening.value.close()
      opened.clear()
    },
  }
}

/** Starts the engine of a local model: ONNX files are encoders, all others language models for llama.cpp. */
export async function startEngine(config: Config, model: Model, log: Log): Promise<ScoreEngine> {
  const { threads, kv_memory_mib, cache_memory_mib, queue_max, gpu, library_dir } = config.engine
  const common = {
    modelFile: model.file,
    cacheBytes: cache_memory_mib * mebibyte,
    waitingMax: queue_max,
    onDeath: (reason: string) => log.error({ model: model.sku, reason }, "the engine process died"),
    ...(threads === undefined ? {} : { threads }),
  }
  if (isEncoderFile(model.file)) return await startEncoderEngine(common)
  return await startLlamaEngine({
    ...common,
    memoryBytes: kv_memory_mib * mebibyte,
    backend: gpu === "off" ? "cpu" : "auto",
    ...(library_dir === undefined ? {} : { libraryDir: library_dir }),
  })
}

/** With default settings, for measurements. */
export async function openModelFile(modelFile: string): Promise<ScoreEngine> {
  return isEncoderFile(modelFile)
    ? await startEncoderEngine({ modelFile })
    : await startLlamaEngine({ modelFile })
}
