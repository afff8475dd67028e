/** The messages between the supervisor and the engine process. */
import type { FaultCode } from "../../contract/errors.ts"
import type { ModelFacts } from "../engine.ts"
import type { SchedulerStats } from "./scheduler.ts"
import type { ScorerOptions, TextWork } from "./scorer.ts"

/** How often the engine process says that it is alive. */
export const PULSE_INTERVAL_MS = 1000

export type ToEngine =
  | { readonly kind: "open"; readonly options: ScorerOptions }
  | { readonly kind: "prepare"; readonly id: number; readonly work: TextWork }
  | { readonly kind: "run"; readonly id: number }
  /** Ends a job wherever it stands: being prepared, prepared or running. No answer follows. */
  | { readonly kind: "drop"; readonly id: number }

export type FromEngine =
  | { readonly kind: "ready"; readonly facts: ModelFacts }
  /** The model cannot be served: starting again would not help. */
  | { readonly kind: "refused"; readonly sentence: string }
  | { readonly kind: "prepared"; readonly id: number; readonly inputTokens: number }
  | { readonly kind: "scored"; readonly id: number; readonly differences: Float64Array }
  | { readonly kind: "failed"; readonly id: number; readonly fault: WireFault }
  /** `decodingMs` is how long the present decode has run; 0 between decodes. */
  | { readonly kind: "pulse"; readonly stats: ProcessStats; readonly decodingMs: number }

export interface ProcessStats extends SchedulerStats {
  /** Jobs that the process holds, from being prepared until they are answered, dropped or discarded. */
  readonly held: number
}

export interface WireFault {
  readonly code: FaultCode
  readonly sentence: string
  readonly retryAfterMs?: number
}
