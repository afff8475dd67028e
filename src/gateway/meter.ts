/** What the gateway tells about one inference request: reserved before it runs, settled and recorded when it ends. */
import type { Model } from "../base/catalog.ts"
import type { Soon } from "../base/soon.ts"
import type { RequestFacts } from "../contract/endpoint.ts"
import type { Principal } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"

const callSources = [
  "decisions",
  "systemone",
  "responses",
  "responses_ws",
  "chat_completions",
  "embeddings",
] as const
export type CallSource = (typeof callSources)[number]

export interface Usage {
  /** Without cached ones. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** How long the model worked; charged where a model has a price per second. */
  readonly executionMs: number
}

export const noUsage: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, executionMs: 0 }

export interface Outcome {
  /** Cancelled: the client went away. */
  readonly result: "success" | "error" | "cancelled"
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly stopReason: "stop" | "length" | "tool_calls" | "content_filter" | null
  readonly toolCalls: readonly string[]
  /** Where it ran; null when it never did. */
  readonly region: string | null
}

/** Who asks what of whom, known before anything is decided. */
export interface SequenceStart {
  readonly callSource: CallSource
  readonly inferenceType: "generation" | "embedding"
  readonly principal: Principal
  /** Null when the principal has no standing in an organization: such a request is refused and not recorded. */
  readonly organizationId: string | null
  readonly request: RequestFacts
}

export interface Meter {
  /** Opens the record of a request. It must be finished exactly once, however the request ends. */
  begin(start: SequenceStart): Sequence
}

/** Answered, with nothing more to tell of it. */
export const success: Outcome = {
  result: "success",
  errorCode: null,
  errorMessage: null,
  stopReason: null,
  toolCalls: [],
  region: null,
}

/** How a request ended that threw: the client went away, or it failed or was refused. */
export function failureOf(error: unknown): Outcome {
  const fault = error instanceof Fault ? error : null
  const gone = fault?.code === "client_closed"
  return {
    result: gone ? "cancelled" : "error",
    errorCode: gone ? null : (fault?.code ?? "internal"),
    errorMessage: gone ? null : (fault?.message ?? "Cannot answer the request: an unexpected failure"),
    stopReason: null,
    toolCalls: [],
    region: null,
  }
}

export interface Sequence {
  readonly id: string
  /** Names the model: its SKU, or what the request sent when the catalog does not know it. */
  name(model: string): void
  /**
   * Reserves the most that the request can cost. Throws Fault `insufficient_credits`, `spend_limit_exceeded`,
   * `payment_method_required` or `billing_required`. Nothing may be evaluated before it is done, which is mostly at once.
   */
  reserve(model: Model, most: Usage): Soon<void>
  /** Where the request is being worked on. */
  placed(region: string): void
  /** The first byte of the response is about to leave. */
  firstByte(): void
  /**
   * Charges what was used and records how it ended. Done when the record is in the journal, which is mostly at once: only
   * then may the last byte or terminal event be handed to the socket. Idempotent: the first call counts.
   */
  finish(usage: Usage, outcome: Outcome): Soon<void>
}

/** Where even this cannot be recorded, the caller gets the first error; the journal refuses new requests by then. */
export async function finishFailed(sequence: Sequence, usage: Usage, error: unknown): Promise<void> {
  try {
    await sequence.finish(usage, failureOf(error))
  } catch {
    // As said above.
  }
}
