/** Opens the engine of a model when it is first used, and closes all of them together. */
import type { Model } from "../base/catalog.ts"
import type { ScoreEngine } from "../engine/engine.ts"

export interface Engines {
  /** Resolves when the model is loaded. */
  scorer(model: Model): Promise<ScoreEngine>
  close(): Promise<void>
}

export function createEngines(open: (model: Model) => Promise<ScoreEngine>): Engines {
  const opened = new Map<string, Promise<ScoreEngine>>()
  return {
    scorer(model) {
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
