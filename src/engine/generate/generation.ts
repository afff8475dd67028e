/** One generation on a local model: prompt to tokens, then token by token through the reader, the stops and the grammar. */
import {
  type LlamaGrammarEvaluationState,
  type LlamaModel,
  type SequenceEvaluateOptions,
  type Token,
  TokenBias,
} from "node-llama-cpp"
import { Fault } from "../../contract/errors.ts"
import { itemsMax } from "../../contract/openai/limits.ts"
import type { GenerateWork, GenerationEvent, GenerationUsage, StopReason, TokenLogprob } from "../engine.ts"
import { callsGrammar, type CompiledTool, compileTools, Constraint, notEnforcedIn } from "./constraint.ts"
import { fittingPrompt } from "./chat-prompt.ts"
import type { LocalModel, Slot } from "./local-model.ts"
import { createReader, FirstCallReader, type Reader, type ReadEvent, StopTexts } from "./reading.ts"

const MIN_P_DEFAULT = 0.05
const PUNISHED_TOKENS_MAX = 512
const SEED_RANGE = 2 ** 31

interface LocalPrepared {
  readonly work: GenerateWork
  readonly tokens: readonly Token[]
  readonly startsReasoning: boolean
  /** What the output is held to from its first token, and the text that stands before it. */
  readonly constraint: Constraint | null
  /** The functions that the model may call by itself. */
  readonly callable: readonly CompiledTool[]
  /** What is left open of the schemas that the output is held to. */
  readonly notEnforced: readonly string[]
  readonly outputTokensMost: number
}

export function prepareGeneration(model: LocalModel, work: GenerateWork): LocalPrepared {
  // The contract bounds what one request brings; stored responses that it continues come on top.
  if (work.messages.length > itemsMax)
    throw new Fault(
      "invalid_request",
      `Cannot run the request: it has ${work.messages.length} messages; at most ${itemsMax} are taken`,
      { param: "messages" },
    )
  const constraint = Constraint.of(work, model.family)
  const callable = constraint === null ? compileTools(work.tools, work.toolChoice) : []
  const notEnforced = [...(constraint?.notEnforced ?? []), ...notEnforcedIn(callable)]
  const { tokens, startsReasoning, roomTokens } = fittingPrompt(model, work, constraint)
  const outputTokensMost = Math.min(roomTokens, work.outputTokensMax ?? roomTokens)
  checkFits(model, constraint, outputTokensMost)
  return { work, tokens, startsReasoning, constraint, callable, notEnforced, outputTokensMost }
}

function checkFits(model: LocalModel, constraint: Constraint | null, outputTokensMost: number): void {
  if (!constraint) return
  const least = model.model.tokenize(constraint.shortest).length
  if (least > outputTokensMost)
    throw new Fault(
      "invalid_request",
      `Cannot enforce the schema: its shortest answer has ${least} tokens; the limit is ${outputTokensMost}`,
      { param: constraint.param },
    )
}

/** Runs one prepared generation and emits its events as they come. */
export class Generation {
  readonly #model: LocalModel
  readonly #prepared: LocalPrepared
  readonly #signal: AbortSignal
  readonly #reader: Reader
  readonly #firstCall: FirstCallReader | null
  readonly #stops: StopTexts
  readonly #text: TokenText
  readonly #outputTokensMax: number
  readonly #written: Token[] = []
  #constraint: Constraint | null
  #grammar: LlamaGrammarEvaluationState | undefined
  #calls = 0
  /** Of tokens whose text was not emitted yet. */
  #logprobs: TokenLogprob[] = []
  #cachedTokens = 0
  #evaluated = false
  #reasoningTokens = 0
  #startedMs: number | null = null
  #endedMs: number | null = null

  constructor(model: LocalModel, prepared: LocalPrepared, outputTokensMax: number, signal: AbortSignal) {
    const { work } = prepared
    this.#model = model
    this.#prepared = prepared
    this.#signal = signal
    this.#outputTokensMax = Math.min(outputTokensMax, prepared.outputTokensMost)
    this.#constraint = prepared.constraint
    const tools = work.toolChoice !== "none" && work.tools.length > 0
    const reader =
      prepared.constraint?.reader() ??
      createReader(model.family, { startsReasoning: prepared.startsReasoning, tools })
    this.#firstCall = tools && !work.parallelToolCalls ? new FirstCallReader(reader) : null
    this.#reader = this.#firstCall ?? reader
    this.#stops = new StopTexts(work.stop)
    this.#text = new TokenText(model.model, model.marks)
  }

  usage(): GenerationUsage {
    const endedMs = this.#endedMs ?? performance.now()
    return {
      inputTokens: this.#evaluated ? this.#prepared.tokens.length : 0,
      cachedInputTokens: this.#cachedTokens,
      outputTokens: this.#written.length,
      reasoningTokens: this.#reasoningTokens,
      executionMs: this.#startedMs === null ? 0 : Math.round(endedMs - this.#startedMs),
    }
  }

  async *run(): AsyncGenerator<GenerationEvent> {
    const { tokens, work } = this.#prepared
    const slot = await this.#model.acquire(work.organizationId, tokens, this.#signal)
    try {
      this.#startedMs = performance.now()
      const rest = await this.#reuse(slot)
      yield* this.#write(slot, rest)
    } finally {
      this.#endedMs = performance.now()
      this.#model.release(slot)
    }
  }

  /** Keeps what the slot already holds of the prompt; the last token is always evaluated, for its successor. */
  async #reuse(slot: Slot): Promise<Token[]> {
    const { tokens } = this.#prepared
    this.#cachedTokens = await this.#model.keep(slot, tokens.slice(0, -1))
    this.#evaluated = true
    return tokens.slice(this.#cachedTokens)
  }

  async *#write(slot: Slot, rest: Token[]): AsyncGenerator<GenerationEvent> {
    if (this.#constraint)
      this.#grammar = this.#model.grammarState(this.#constraint.grammar, this.#constraint.param)
    const { topLogprobs } = this.#prepared.work
    const options = this.#options()
    const source =
      topLogprobs === null
        ? withoutProbabilities(slot.sequence.evaluate(rest, options))
        : slot.sequence.evaluateWithMetadata(rest, { probabilities: true }, options)
    let reason: StopReason | null = null
    for await (const { token, probabilities } of this.#model.rounds.of(source)) {
      if (this.#signal.aborted) break
      const piece = this.#take(token)
      if (piece === null) {
        reason = "length"
        break
      }
      if (probabilities) this.#logprobs.push(this.#logprob(token, probabilities, topLogprobs ?? 0))
      yield* this.#read(piece)
      reason = this.#reasonToStop()
      if (reason !== null) break
    }
    this.#signal.throwIfAborted()
    yield* this.#finish(reason ?? "stop")
  }

  /** The token's text; null when what it begins could not be ended within the budget, so that it is not taken. */
  #take(token: Token): string | null {
    const piece = this.#text.next(token)
    const left = this.#outputTokensMax - this.#written.length - 1
    if (this.#constraint && !this.#constraint.tryAdvance(piece, (end) => this.#fits(end, left))) return null
    this.#written.push(token)
    if (this.#reader.inReasoning) this.#reasoningTokens++
    return piece
  }

  /** A token has at least one byte, so most ends fit without being counted. */
  #fits(end: string, tokensLeft: number): boolean {
    return Buffer.byteLength(end) <= tokensLeft || this.#model.model.tokenize(end).length <= tokensLeft
  }

  #reasonToStop(): StopReason | null {
    if (this.#stops.found !== null || this.#firstCall?.ended) return "stop"
    if (this.#constraint?.ended) {
      if (this.#prepared.constraint) return "stop"
      this.#leaveCall()
    }
    if (this.#written.length >= this.#outputTokensMax) return "length"
    this.#enterCall()
    return null
  }

  /** A call that the model began by itself is held to the functions' schemas from its opening mark on. */
  #enterCall(): void {
    const { opened } = this.#reader
    if (this.#constraint || !opened || opened.body.trim() !== "") return
    const constraint = callsGrammar(this.#prepared.callable, opened.format)
    const left = this.#outputTokensMax - this.#written.length
    if (!constraint || !this.#fits(constraint.shortest, left)) return
    this.#constraint = constraint
    this.#grammar = this.#model.grammarState(constraint.grammar, constraint.param)
  }

  #leaveCall(): void {
    this.#constraint = null
    this.#grammar = undefined
  }

  #read(piece: string): GenerationEvent[] {
    return this.#reader.read(piece).flatMap((event) => this.#toEvents(event))
  }

  #toEvents(event: ReadEvent): GenerationEvent[] {
    if (event.kind === "text") return this.#textEvents(this.#stops.pass(event.text))
    if (event.kind === "call") this.#calls++
    // Log-probabilities are those of the answer's text only.
    this.#logprobs = []
    return [event]
  }

  /** A text takes the log-probabilities of every token since the last one: of those that were held back, too. */
  #textEvents(text: string): GenerationEvent[] {
    if (text === "") return []
    const logprobs = this.#prepared.work.topLogprobs === null ? null : this.#logprobs
    this.#logprobs = []
    return [{ kind: "text", text, logprobs }]
  }

  /** When the budget ends inside something constrained, the shortest end is written; the model is not asked for it. */
  *#finish(reason: StopReason): Generator<GenerationEvent> {
    const constraint = this.#constraint
    let last = constraint ? "" : this.#text.end()
    if (constraint && !constraint.complete && reason === "length") {
      last = constraint.shortest
      this.#written.push(...this.#model.model.tokenize(last))
    }
    yield* this.#read(last)
    yield* this.#reader.end().flatMap((event) => this.#toEvents(event))
    yield* this.#textEvents(this.#stops.end())
    // A forced end still makes a whole answer, but says that it was cut.
    const ended =
      this.#calls > 0 && (reason === "stop" || constraint?.forced === true) ? "tool_calls" : reason
    const stop = ended === "stop" ? this.#stops.found : null
    yield { kind: "end", reason: ended, ...(stop === null ? {} : { stop }) }
  }

  #options(): SequenceEvaluateOptions {
    const { sampling } = this.#prepared.work
    const { frequencyPenalty, presencePenalty } = sampling
    const bias = Object.entries(sampling.logitBias)
    // What a grammar forces may have to repeat itself.
    const isFree = sampling.temperature === null && this.#grammar === undefined
    const penalty = isFree ? this.#model.repeatPenaltyDefault : 1
    return {
      temperature: sampling.temperature ?? this.#model.temperatureDefault,
      minP: sampling.temperature === null && sampling.topP === null ? MIN_P_DEFAULT : 0,
      topK: 0,
      topP: sampling.topP ?? 1,
      seed: sampling.seed ?? Math.floor(Math.random() * SEED_RANGE),
      grammarEvaluationState: () => this.#grammar,
      ...(frequencyPenalty === 0 && presencePenalty === 0 && penalty === 1
        ? {}
        : {
            repeatPenalty: {
              punishTokens: () => this.#written.slice(-PUNISHED_TOKENS_MAX),
              maxPunishTokens: PUNISHED_TOKENS_MAX,
              penalty,
              frequencyPenalty,
              presencePenalty,
            },
          }),
      ...(bias.length === 0 ? {} : { tokenBias: this.#bias(bias) }),
    }
  }

  #bias(entries: readonly (readonly [string, number])[]): TokenBias {
    const bias = new TokenBias(this.#model.model.tokenizer)
    // `set` leaves out tokens that end an answer, which are the ones that clients mostly want to keep from being written.
    // True of the version that is pinned: `set` puts the others into this map and does nothing else.
    const { _biases: biases } = bias as unknown as { readonly _biases: Map<Token, number> }
    for (const [token, value] of entries) biases.set(Number(token) as Token, value)
    return bias
  }

  #logprob(token: Token, probabilities: ReadonlyMap<Token, number>, count: number): TokenLogprob {
    const textOf = (one: Token): string => this.#model.model.detokenize([one], true)
    const top = [...probabilities].slice(0, count)
    return {
      token: textOf(token),
      logprob: logOf(probabilities.get(token) ?? 0),
      top: top.map(([one, probability]) => ({ token: textOf(one), logprob: logOf(probability) })),
    }
  }
}

/** OpenAI's stand-in for a probability too small to name. */
const LOGPROB_LEAST = -9999

const logOf = (probability: number): number => (probability > 0 ? Math.log(probability) : LOGPROB_LEAST)

async function* withoutProbabilities(
  tokens: AsyncIterable<Token>,
): AsyncGenerator<{ token: Token; probabilities?: ReadonlyMap<Token, number> }> {
  for await (const token of tokens) yield { token }
}

/** A character has at most four bytes, and a byte may be a token. */
const PENDING_TOKENS_MAX = 8
const LAST_TOKENS = 4

class TokenText {
  readonly #model: LlamaModel
  readonly #marks: ReadonlySet<string>
  #pending: Token[] = []
  #last: Token[] = []

  /** Special tokens are dropped, but for those that mark something the reader knows. */
  constructor(model: LlamaModel, marks: ReadonlySet<string>) {
    this.#model = model
    this.#marks = marks
  }

  next(token: Token): string {
    if (this.#pending.length === 0 && this.#model.isSpecialToken(token)) return this.#special(token)
    this.#pending.push(token)
    const text = this.#model.detokenize(this.#pending, false, this.#last)
    if (text.endsWith("\uFFFD") && this.#pending.length < PENDING_TOKENS_MAX) return ""
    this.#last = [...this.#last, ...this.#pending].slice(-LAST_TOKENS)
    this.#pending = []
    return text
  }

  /** Bytes that never became a character. */
  end(): string {
    const text = this.#pending.length === 0 ? "" : this.#model.detokenize(this.#pending, false, this.#last)
    this.#pending = []
    return text
  }

  #special(token: Token): string {
    this.#last = [...this.#last, token].slice(-LAST_TOKENS)
    const text = this.#model.detokenize([token], true)
    return this.#marks.has(text) ? text : ""
  }
}
