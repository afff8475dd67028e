/** The messages between the gateway and the process that generates and embeds. */
import type { FaultCode } from "../../contract/errors.ts"
import type { EmbedWork, GenerateWork, GenerationEvent, GenerationUsage } from "./generate.ts"

export interface GenerationOptions {
  readonly modelFile: string
  readonly kind: "generation" | "embedding"
  readonly threads?: number
  /** Memory for the text of requests that run. */
  readonly memoryBytes: number
  readonly waitingMax: number
  readonly gpu: boolean
}

/** Events that may be on their way to a reader that has not taken them; then its generation waits. */
export const WINDOW_EVENTS = 2048
export const PULSE_INTERVAL_MS = 1000

export type ToGenerator =
  | { readonly kind: "open"; readonly options: GenerationOptions }
  | { readonly kind: "prepare"; readonly id: number; readonly work: GenerateWork }
  | { readonly kind: "run"; readonly id: number; readonly outputTokensMax: number }
  | { readonly kind: "prepare_embedding"; readonly id: number; readonly work: EmbedWork }
  | { readonly kind: "embed"; readonly id: number }
  /** The reader took so many events. */
  | { readonly kind: "taken"; readonly id: number; readonly count: number }
  | { readonly kind: "drop"; readonly id: number }

export type FromGenerator =
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly sentence: string }
  | { readonly kind: "pulse" }
  | {
      readonly kind: "prepared"
      readonly id: number
      readonly inputTokens: number
      readonly outputTokensMost: number
    }
  | {
      readonly kind: "events"
      readonly id: number
      readonly events: readonly GenerationEvent[]
      readonly usage: GenerationUsage
    }
  | { readonly kind: "embedded"; readonly id: number; readonly vectors: readonly Float32Array[] }
  | {
      readonly kind: "failed"
      readonly id: number
      readonly fault: WireFault
      readonly usage: GenerationUsage | null
    }
  /** A dropped generation has stopped; what it used is final. Null when it never ran. */
  | { readonly kind: "stopped"; readonly id: number; readonly usage: GenerationUsage | null }

export interface WireFault {
  readonly code: FaultCode
  readonly sentence: string
  readonly param?: string
  readonly retryAfterMs?: number
}
