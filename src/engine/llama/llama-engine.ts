/** The embedded engine of GGUF models: llama.cpp in a process of its own. */
import { type ScoreProcess, startScoreProcess } from "../engine-client.ts"
import type { ScoreStatus } from "../engine-service.ts"
import type { SchedulerStats } from "./scheduler.ts"
import type { ScorerOptions } from "./scorer.ts"

const silenceMsMaxDefault = 30_000

export interface LlamaEngineOptions extends ScorerOptions {
  readonly silenceMsMax?: number
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: (reason: string) => void
}

export type LlamaEngine = ScoreProcess<ScoreStatus<SchedulerStats>>

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startLlamaEngine(options: LlamaEngineOptions): Promise<LlamaEngine> {
  const { onDeath, silenceMsMax = silenceMsMaxDefault, ...open } = options
  const entry = new URL("./child.ts", import.meta.url)
  return await startScoreProcess<ScoreStatus<SchedulerStats>>({ entry, open, silenceMsMax, onDeath })
}
