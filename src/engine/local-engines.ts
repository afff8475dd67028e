/** The engines of this machine as the gateway and a worker use them: each is loaded when it is first used, and may leave in between. */
import { stat } from "node:fs/promises"
import type { Model } from "../base/catalog.ts"
import type { EngineReport } from "../base/fleet-report.ts"
import { Fault } from "../contract/errors.ts"
import type { ModelEngines } from "./engine-service.ts"
import type { ModelFacts, PreparedScore, ScoreEngine } from "./engine.ts"
import type { EmbedEngine, GenerateEngine, GenerationEvent, PreparedGeneration } from "./generate/generate.ts"
import type { LocalEngine } from "./generate/local-engine.ts"
import { Residency, type ResidencySettings } from "./residency.ts"
import type { Resident, Use } from "./resident.ts"

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
/** As long as a generation may take to say what it used. */
const stoppedAfterMs = 10_000

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
        ? { embedder: () => residentEmbedder(generatorOf(model)) }
        : { scorer: () => scorer(model), generator: () => residentGenerator(generatorOf(model)) },
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

/** Keeps a model in memory for a piece of work. */
interface Hold {
  /** From now on the work itself sees aborts. */
  begin(): void
  release(): void
}

/** Prepares with a model that stays until the work has run, is discarded, or is aborted before it ran. */
async function prepareWith<Engine, Prepared extends { discard(): void }>(
  resident: Resident<Engine & { close(): Promise<void> }>,
  signal: AbortSignal,
  prepare: (engine: Engine) => Promise<Prepared>,
): Promise<{ readonly prepared: Prepared; readonly hold: Hold }> {
  const use = await resident.use(signal)
  try {
    const prepared = await prepare(use.engine)
    const hold = holdFor(use, signal, () => prepared.discard())
    signal.throwIfAborted()
    return { prepared, hold }
  } catch (error) {
    use.release()
    throw error
  }
}

function holdFor(use: Use<unknown>, signal: AbortSignal, discard: () => void): Hold {
  let hasBegun = false
  const abort = (): void => {
    if (hasBegun) return
    // Whoever wanted it is gone, and need not say so.
    discard()
    use.release()
  }
  if (signal.aborted) abort()
  signal.addEventListener("abort", abort, { once: true })
  return {
    begin: () => {
      hasBegun = true
    },
    release: () => {
      signal.removeEventListener("abort", abort)
      use.release()
    },
  }
}

/** Runs what was prepared, and lets the model go. */
async function runOnce<Result>(hold: Hold, run: () => Promise<Result>): Promise<Result> {
  hold.begin()
  try {
    return await run()
  } finally {
    hold.release()
  }
}

function residentScorer(resident: Resident<ScoreEngine>): ScoreEngine {
  let facts: ModelFacts | undefined
  return {
    // They do not change: a model need not be in memory to be described.
    facts: async () => {
      const use = facts ? null : await resident.use()
      try {
        facts ??= await use?.engine.facts()
      } finally {
        use?.release()
      }
      if (!facts) throw new Fault("inference_failed", "Cannot describe the model: it was not loaded")
      return facts
    },
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepare(work, signal),
      )
      return heldScore(prepared, hold)
    },
    vector: async (work, signal) => {
      const use = await resident.use(signal)
      try {
        if (use.engine.vector) return await use.engine.vector(work, signal)
        throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
      } finally {
        use.release()
      }
    },
    stats: () => resident.engine?.stats?.(),
    close: async () => undefined,
  }
}

function heldScore(prepared: PreparedScore, hold: Hold): PreparedScore {
  return {
    inputTokens: prepared.inputTokens,
    get reading() {
      return prepared.reading
    },
    run: async (signal) => await runOnce(hold, async () => await prepared.run(signal)),
    discard: () => {
      prepared.discard()
      hold.release()
    },
  }
}

function residentGenerator(resident: Resident<LocalEngine>): GenerateEngine {
  return {
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepare(work, signal),
      )
      return heldGeneration(prepared, hold)
    },
    close: async () => undefined,
  }
}

function heldGeneration(prepared: PreparedGeneration, hold: Hold): PreparedGeneration {
  return {
    inputTokensMost: prepared.inputTokensMost,
    outputTokensMost: prepared.outputTokensMost,
    isHandedOn: prepared.isHandedOn,
    notEnforced: prepared.notEnforced,
    usage: () => prepared.usage(),
    run: (outputTokensMax, signal) => heldEvents(prepared.run(outputTokensMax, signal), hold, signal),
    discard: () => {
      prepared.discard()
      hold.release()
    },
  }
}

async function* heldEvents(
  events: AsyncIterable<GenerationEvent>,
  hold: Hold,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent, void, undefined> {
  hold.begin()
  // A reader that is gone for good does not end what it reads; an engine that is asked to stop has stopped by then.
  const abort = (): void => void setTimeout(() => hold.release(), stoppedAfterMs).unref()
  signal.addEventListener("abort", abort, { once: true })
  try {
    yield* events
  } finally {
    signal.removeEventListener("abort", abort)
    hold.release()
  }
}

function residentEmbedder(resident: Resident<LocalEngine>): EmbedEngine {
  return {
    prepare: async (work, signal) => {
      const { prepared, hold } = await prepareWith(resident, signal, async (engine) =>
        engine.prepareEmbedding(work, signal),
      )
      return {
        inputTokens: prepared.inputTokens,
        run: async (runSignal) => await runOnce(hold, async () => await prepared.run(runSignal)),
        discard: () => {
          prepared.discard()
          hold.release()
        },
      }
    },
    close: async () => undefined,
  }
}
