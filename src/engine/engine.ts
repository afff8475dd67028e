/** The engine port: what runs a model, wherever it runs; it scores, writes text and calls functions, or embeds. */
import { Fault } from "../contract/errors.ts"
import type { decisionMethods } from "../contract/model-check.ts"
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

/**
 * How a caller accompanies its work. `admit` is called once the size of the work is known and before anything is evaluated; a
 * refusal is thrown and ends the work with it. Scoring by a chat model also says what it may write. Work that is begun anew, at another worker or in a new process, is admitted anew.
 * Aborting ends the work before its next decode and rejects with the signal's reason.
 */
export interface EngineCall<Size = number, Admission = void> {
  readonly signal: AbortSignal
  readonly admit: (size: Size, outputTokensMost?: number) => Promise<Admission>
}

export interface Scored {
  /**
   * Element i is the margin of branch i: log-odds of yes over no. For a language model that is
   * logsumexp(logits of the yes tokens) - logsumexp(logits of the no tokens).
   */
  readonly margins: Float64Array
  /**
   * The prefix once plus every branch suffix, whatever was reused. A worker that tells its count only with its answer has an upper
   * bound admitted.
   */
  readonly inputTokens: number
  /** Where the work asks for it and the engine can tell. */
  readonly reading?: EvidenceReading | undefined
  /** What a chat model was asked besides: how much of its input was cached, and what it wrote. */
  readonly chat?: Pick<GenerationUsage, "cachedInputTokens" | "outputTokens">
  /** Of remote workers: how the answers were found. */
  readonly method?: DecisionMethod
  /** A chat model's probabilities, of which nothing says how sure it may be. */
  readonly isUncalibrated?: boolean
  /** What calibrated a chat model's answers: another calibration has another name. */
  readonly calibration?: string
}

/** A chat model's answer that cannot be used: what it read and wrote is paid to its provider all the same. */
export class UnusableAnswer extends Fault {
  readonly used: Pick<GenerationUsage, "inputTokens" | "cachedInputTokens" | "outputTokens">
  /** At the model's prices, where they are known. */
  costTicks = 0n

  constructor(fault: Fault, used: UnusableAnswer["used"]) {
    const { retryAfterMs } = fault
    super(fault.code, fault.message, {
      cause: fault,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
    this.used = used
  }
}

/** What a failure cost: its own, or that of the last try that it tells of. */
export const unusableIn = (error: unknown): UnusableAnswer | null =>
  error instanceof UnusableAnswer
    ? error
    : error instanceof Fault && error.cause instanceof UnusableAnswer
      ? error.cause
      : null

/**
 * `native`: the worker has an endpoint for decisions. `tokens`: every branch is a prompt, answered by the likelihood of yes and no.
 * `logprobs`: one token among labels. `schema`: JSON with a stated confidence. `text`: the same as plain text.
 */
export type DecisionMethod = (typeof decisionMethods)[number]

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

/** What scoring reads and writes at most. */
export interface ScoreSize {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Scores branches; throws Fault `context_length_exceeded` before it admits, `inference_failed` at any time. */
export interface ScoreEngine {
  facts(): Promise<ModelFacts>
  score(work: ScoreWork, call: EngineCall): Promise<Scored>
  /** Of chat models, where one question is several requests: known before any of them; null where tokens are counted. */
  sizeMost?(work: Pick<ScoreWork, "evidence" | "branches">): ScoreSize | null
  /** Of encoders; others have no such method or reject with Fault `inference_failed`. */
  vector?(work: VectorWork, signal: AbortSignal): Promise<EvidenceVector>
  /** Of embedded engines, as their process last told; undefined before it did. */
  stats?(): (EngineStats & { readonly restarts: number }) | undefined
  close(): Promise<void>
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
}

/** What a message shows beside its text; only models whose workers read it get it. */
export interface Media {
  readonly kind: "image" | "file"
  /** Before which character of the text it stands. */
  readonly at: number
  /** The worker is to fetch it from an address. */
  readonly isRemote: boolean
  /** As a part of OpenAI's chat, which every remote dialect speaks. */
  readonly part: JsonObject
}

/** One turn of the conversation, as the model is to read it. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool"
  /** All of its text. */
  readonly content: string
  readonly media?: readonly Media[]
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

/** What is known of a generation once it is templated, tokenised and found to fit. */
export interface GenerationSizes {
  /** At least as many as will be counted; exact for local models. */
  readonly inputTokensMost: number
  /** The most that can be written: the request's limit, or what is left of the context. */
  readonly outputTokensMost: number
  /** The schemas were handed on to a worker: it says that it keeps to them. */
  readonly isHandedOn?: boolean | undefined
  /** JSON pointers of the keywords that nothing holds the answer to; "#" is a whole schema. */
  readonly notEnforced?: readonly string[] | undefined
}

/** `admit` answers how many tokens may be written. */
export interface GenerateCall extends EngineCall<GenerationSizes, number> {
  /** Told what has been used so far, again and again, also on the way out of a failure or an abort. */
  readonly onUsage: (usage: GenerationUsage) => void
}

export interface GenerateEngine {
  /**
   * Admits before its first event; its last event is `end`. Throws Fault `context_length_exceeded`, `invalid_request` or
   * `unsupported_parameter` before it admits. Aborting stops within one decode.
   */
  generate(work: GenerateWork, call: GenerateCall): AsyncGenerator<GenerationEvent, void, undefined>
  close(): Promise<void>
}

export type EmbedInput = string | readonly number[]

export interface EmbedWork {
  readonly inputs: readonly EmbedInput[]
  /** Null keeps every dimension the model has. */
  readonly dimensions: number | null
}

export interface Embedded {
  /** One vector of length one per input, in their order. */
  readonly vectors: readonly Float32Array[]
  readonly inputTokens: number
}

export interface EmbedEngine {
  embed(work: EmbedWork, call: EngineCall): Promise<Embedded>
  close(): Promise<void>
}

/** Work that waits to be admitted elsewhere than where it was begun: its size goes up, and the admission comes down. */
export class PendingAdmission<Size, Admission> {
  readonly #size = Promise.withResolvers<Size>()
  readonly #admission = Promise.withResolvers<Admission>()

  constructor() {
    // One that nothing waits for is refused too.
    this.#admission.promise.catch(() => undefined)
  }

  /** Of the work's call. What was granted holds for work that is begun anew. */
  readonly admit = async (size: Size): Promise<Admission> => {
    this.#size.resolve(size)
    return await this.#admission.promise
  }

  /** Rejects with the failure of work that ends before it asks. */
  async size(work: Promise<unknown>): Promise<Size> {
    const unasked = work.then(() => {
      throw new Error("Cannot run the work: the engine did not say its size")
    })
    return await Promise.race([this.#size.promise, unasked])
  }

  grant(admission: Admission): void {
    this.#admission.resolve(admission)
  }

  /** After a grant it does nothing. */
  refuse(reason: unknown = new Error("The work was not admitted")): void {
    this.#admission.reject(reason)
  }
}

/** For work that costs nothing, or was reserved before. */
export const admitAny = async (): Promise<void> => await Promise.resolve()

/** The size of work, of which nothing is evaluated. */
export async function measure<Size>(
  run: (admit: (size: Size) => Promise<never>) => Promise<unknown>,
): Promise<Size> {
  const admission = new PendingAdmission<Size, never>()
  const work = run(admission.admit)
  try {
    return await admission.size(work)
  } finally {
    admission.refuse()
    // It has ended when its size is told, so that what it held is free.
    await work.catch(() => undefined)
  }
}

interface Begun<Event> {
  readonly first: Promise<IteratorResult<Event, unknown>>
  /** All of them, the first too. */
  readonly events: AsyncIterableIterator<Event>
}

/** Asks for the first event before anything reads them: a generation admits on its way there. */
export function begin<Event>(source: AsyncIterable<Event>): Begun<Event> {
  const events = source[Symbol.asyncIterator]()
  const first = events.next()
  // Read or not, its failure is handled.
  first.catch(() => undefined)
  let unread: typeof first | null = first
  return {
    first,
    events: {
      next: async () => {
        const step = unread ?? events.next()
        unread = null
        return await step
      },
      return: async () => (await events.return?.()) ?? { done: true, value: undefined },
      [Symbol.asyncIterator]() {
        return this
      },
    },
  }
}

/** Vectors of length one. */
export function normalised(values: readonly number[]): Float32Array {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  return Float32Array.from(values, (value) => (length === 0 ? 0 : value / length))
}
