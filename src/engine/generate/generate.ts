/** The generation port: what writes text, calls functions and embeds, wherever its model runs. */

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
}

/** One turn of the conversation, as the model is to read it. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: string
  readonly reasoning?: string
  readonly toolCalls?: readonly ToolCall[]
  /** Which call a tool's message answers. */
  readonly toolCallId?: string
}

export type JsonObject = Readonly<Record<string, unknown>>

export interface FunctionTool {
  readonly name: string
  readonly description: string | null
  /** A JSON schema of the arguments; null takes none. */
  readonly parameters: JsonObject | null
  readonly strict: boolean
}

export type ToolChoice = "auto" | "none" | "required" | { readonly name: string }

export type OutputFormat =
  | { readonly kind: "text" }
  | { readonly kind: "json_object" }
  | {
      readonly kind: "json_schema"
      readonly name: string
      readonly schema: JsonObject
      readonly strict: boolean
      readonly description?: string
    }

interface Sampling {
  readonly temperature: number | null
  readonly topP: number | null
  readonly seed: number | null
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  /** Token ids with what is added to their logits. */
  readonly logitBias: Readonly<Record<string, number>>
}

export interface GenerateWork {
  /** Fairness and cached prefixes are kept per organization. */
  readonly organizationId: string
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly FunctionTool[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  readonly format: OutputFormat
  readonly sampling: Sampling
  readonly stop: readonly string[]
  /** How many alternatives to report for each token; null reports none and no log-probabilities. */
  readonly topLogprobs: number | null
  /** Most tokens to write; null leaves it to the model's context. */
  readonly outputTokensMax: number | null
  /** Drop the oldest messages that do not fit, rather than refuse. */
  readonly truncate: boolean
  /** How much a reasoning model may think; "none" asks it not to. */
  readonly effort: string | null
}

export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  readonly top: readonly { readonly token: string; readonly logprob: number }[]
}

export type GenerationEvent =
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "text"; readonly text: string; readonly logprobs: readonly TokenLogprob[] | null }
  /** A function call begins; its arguments follow in pieces. */
  | { readonly kind: "call"; readonly name: string }
  | { readonly kind: "arguments"; readonly text: string }
  /** `stop`: which of the request's own texts ended it, where the engine tells. */
  | { readonly kind: "end"; readonly reason: StopReason; readonly stop?: string }

export type StopReason = "stop" | "length" | "tool_calls" | "content_filter"

export interface GenerationUsage {
  /** Every token of the prompt, cached ones too. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly executionMs: number
}

export const noGenerationUsage: GenerationUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  executionMs: 0,
}

/** Templated, tokenised and found to fit; nothing has been evaluated yet. */
export interface PreparedGeneration {
  /** At least as many as will be counted; exact for local models. */
  readonly inputTokensMost: number
  /** The most that can be written: the request's limit, or what is left of the context. */
  readonly outputTokensMost: number
  /** The schemas were handed on to a worker: it says that it keeps to them. */
  readonly isHandedOn?: boolean | undefined
  /** JSON pointers of the keywords that nothing holds the answer to; "#" is a whole schema. */
  readonly notEnforced?: readonly string[] | undefined
  /** Writes at most so many tokens. Its last event is `end`; a failure is thrown. Aborting stops within one decode. */
  run(outputTokensMax: number, signal: AbortSignal): AsyncIterable<GenerationEvent>
  /** What has been used so far, also after a failure or an abort. */
  usage(): GenerationUsage
  /** Forgets work that will not be run. */
  discard(): void
}

/** Throws Fault `context_length_exceeded`, `invalid_request` or `unsupported_parameter` from `prepare`. */
export interface GenerateEngine {
  prepare(work: GenerateWork, signal: AbortSignal): Promise<PreparedGeneration>
  close(): Promise<void>
}

export type EmbedInput = string | readonly number[]

export interface EmbedWork {
  readonly inputs: readonly EmbedInput[]
  /** Null keeps every dimension the model has. */
  readonly dimensions: number | null
}

export interface PreparedEmbedding {
  readonly inputTokens: number
  /** One vector of length one per input, in their order. */
  run(signal: AbortSignal): Promise<readonly Float32Array[]>
  /** Instead of running it. */
  discard(): void
}

export interface EmbedEngine {
  prepare(work: EmbedWork, signal: AbortSignal): Promise<PreparedEmbedding>
  close(): Promise<void>
}
