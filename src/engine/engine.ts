/** The engine port: what runs a model, wherever it runs. */
import type { Branch } from "./branch.ts"

/** What a model file or worker says about itself. */
export interface ModelFacts {
  /** Name and version as the model's own metadata gives them. */
  readonly name: string
  readonly contextTokensMax: number
  readonly parameterCount: number
  /** For example Q8_0 or F16. */
  readonly quantization: string
}

/** One piece of evidence and the branches to be judged against it. */
export interface ScoreWork {
  /** Fairness and cached prefixes are kept per organization. */
  readonly organizationId: string
  /** Plain text: nothing in it is ever read as a template's special token. */
  readonly evidence: string
  readonly branches: readonly Branch[]
  /** Also say which model read the evidence, and with `vector` what it made of it, in the same run. */
  readonly reading?: { readonly vector: boolean } | undefined
}

/** What a model says of evidence beside the margins. */
export interface EvidenceReading {
  /**
   * As `EvidenceVector.vector`; null when it was not wanted or the model has none. Where no branch is of a choice all but
   * its last third may be zero: the middle layer's part, which is all that is free of cost then.
   */
  readonly vector: Float32Array | null
  /** Another file or build of a model has another version: what was fitted to one does not fit the other. */
  readonly modelVersion: string
}

/** One piece of evidence to make a vector of. */
export type VectorWork = Pick<ScoreWork, "organizationId" | "evidence">

export interface EvidenceVector {
  readonly inputTokens: number
  /** Pooled over the evidence, of length one: the cosine of two of them is their product. */
  readonly vector: Float32Array
}

/** Tokenised, measured and found to fit the model's context; nothing has been evaluated yet. */
export interface PreparedScore {
  /**
   * The prefix once plus every branch suffix, whatever is later reused. A worker that tells its count only with its
   * answer gives an upper bound until `run` resolves.
   */
  readonly inputTokens: number
  /**
   * Evaluates every branch. Element i is the margin of branch i: log-odds of yes over no. For a language model that is
   * logsumexp(logits of the yes tokens) - logsumexp(logits of the no tokens). Aborting ends the work before its next decode and rejects with the signal's reason.
   */
  run(signal: AbortSignal): Promise<Float64Array>
  /** Known once `run` has resolved, where the work asks for it and the engine can tell. */
  readonly reading?: EvidenceReading | undefined
  /** Forgets work that will not be run. */
  discard(): void
}

/** What an engine did since its process started, and what it holds now. */
export interface EngineStats {
  readonly runs: number
  readonly tokensRun: number
  /** What these runs had room for: `tokensRun` of it is how full they were. */
  readonly tokensRunMax: number
  readonly tokensReused: number
  /** Requests that found evidence evaluated, wholly or in part, and those that did not. */
  readonly cacheHits: number
  readonly cacheMisses: number
  readonly cacheBytes: number
}

/** Scores branches; throws Fault `context_length_exceeded` from `prepare`, `inference_failed` from either. */
export interface ScoreEngine {
  facts(): Promise<ModelFacts>
  prepare(work: ScoreWork, signal: AbortSignal): Promise<PreparedScore>
  /** Of encoders; others have no such method or reject with Fault `inference_failed`. */
  vector?(work: VectorWork, signal: AbortSignal): Promise<EvidenceVector>
  /** Of embedded engines, as their process last told; undefined before it did. */
  stats?(): (EngineStats & { readonly restarts: number }) | undefined
  close(): Promise<void>
}
