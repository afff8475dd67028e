/** The embedded engine of encoders: ONNX Runtime in a process of its own. */
import { type ScoreProcess, startScoreProcess } from "../engine-client.ts"
import type { ScoreStatus } from "../engine-service.ts"
import type { EncoderOptions } from "./open-encoder.ts"
import type { SchedulerStats } from "./scheduler.ts"

const silenceMsMaxDefault = 30_000

export interface EncoderEngineOptions extends EncoderOptions {
  readonly silenceMsMax?: number
  /** Told when the process dies, with the reason, for the log. */
  readonly onDeath?: (reason: string) => void
}

/** Encoders give vectors. */
export type EncoderEngine = Required<Omit<ScoreProcess<ScoreStatus<SchedulerStats>>, "sizeMost">>

/** Resolves when the model is loaded; rejects with a clear sentence when it cannot be. */
export async function startEncoderEngine(options: EncoderEngineOptions): Promise<EncoderEngine> {
  const { onDeath, silenceMsMax = silenceMsMaxDefault, ...open } = options
  const entry = new URL("./child.ts", import.meta.url)
  return await startScoreProcess<ScoreStatus<SchedulerStats>>({ entry, open, silenceMsMax, onDeath })
}
