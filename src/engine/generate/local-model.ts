/** A model in this process, through node-llama-cpp: slots that generate side by side, each with a conversation cached. */
import { type Grammar, toGbnf } from "@umpire/schema-grammar"
import { availableParallelism } from "node:os"
import {
  type Llama,
  type LlamaContext,
  type LlamaContextSequence,
  LlamaGrammar,
  LlamaGrammarEvaluationState,
  LlamaLogLevel,
  type LlamaModel,
  type Token,
  getLlama,
} from "node-llama-cpp"
import { FairTurns } from "../../base/turns.ts"
import { Fault } from "../../contract/errors.ts"
import type { ModelFacts } from "../engine.ts"
import { readGguf, withoutDefaultSystem } from "../gguf.ts"
import { piecesOf } from "../text-pieces.ts"
import type { TemplateFacts } from "./chat-prompt.ts"
import { type Family, familyOf, marksOf } from "./families.ts"

const SLOTS_MAX = 8
/** Fewer slots are opened rather than contexts shorter than this. */
const CONTEXT_TOKENS_WANTED = 8192
const GRAMMARS_KEPT_MAX = 64
const BYTES_PER_CELL_VALUE = 2
const MEMORY_BYTES_DEFAULT = 512 * 1024 * 1024
const WAITING_MAX_DEFAULT = 4096

export interface Slot {
  readonly sequence: LlamaContextSequence
  /** Whose conversation it holds: another organization never starts from it. */
  organizationId: string | null
  /** Holds what must be wiped first: another organization's conversation, or what a failed decode left. */
  stale: boolean
  /** Null while it is free. */
  endTurn: (() => void) | null
}

export interface GenerationOptions {
  readonly modelFile: string
  /** Path of a LoRA adapter of the model. */
  readonly adapterFile?: string
  readonly kind: "generation" | "embedding"
  readonly threads?: number
  /** Memory for the text of requests that run. */
  readonly memoryBytes?: number
  readonly waitingMax?: number
  /** Absent, it is used where there is one. */
  readonly gpu?: boolean
}

interface Waiting {
  readonly organizationId: string
  readonly tokens: readonly Token[]
  grant(slot: Slot): void
}

/**
 * Threads of one decode wait for each other at every layer, so one whose core is taken holds up all of them: the gateway
 * gets a core. On two cores that were not idle, two threads wrote 12 to 17 tokens a second and one thread 127 to 137.
 */
export const threadsDefault = (): number => Math.max(1, availableParallelism() - 1)

/** llama.cpp as npm installed it: nothing is downloaded or compiled. */
export async function openLibrary({
  gpu = true,
  threads = threadsDefault(),
}: Pick<GenerationOptions, "threads" | "gpu"> = {}): Promise<Llama> {
  return await getLlama({
    gpu: gpu ? "auto" : false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, message) => void process.stderr.write(`${message}\n`),
    maxThreads: threads,
  })
}

export async function openLlama(
  options: Pick<GenerationOptions, "modelFile" | "threads" | "gpu">,
): Promise<{ llama: Llama; model: LlamaModel }> {
  const llama = await openLibrary(options)
  return { llama, model: await llama.loadModel({ modelPath: options.modelFile }) }
}

/** What a request that names no temperature gets: small models wander at 1, very small ones at anything above 0. */
const TEMPERATURE_DEFAULT = 0.7
const SMALL_MODEL_TEMPERATURE = 0
/** And what keeps those from writing one sentence again and again. */
const SMALL_MODEL_REPEAT_PENALTY = 1.1
const SMALL_MODEL_BYTES_MAX = 512 * 1024 * 1024

export class LocalModel {
  readonly model: LlamaModel
  readonly facts: ModelFacts
  readonly temperatureDefault: number
  readonly repeatPenaltyDefault: number
  readonly template: TemplateFacts
  readonly marks: ReadonlySet<string>
  /** No token stands for more; Infinity where the file does not say. */
  readonly tokenCharactersMax: number
  readonly rounds = new DecodeRounds()
  readonly #llama: Llama
  readonly #slots: Slot[]
  readonly #turns = new FairTurns()
  readonly #waiting: Waiting[] = []
  readonly #waitingMax: number
  readonly #grammars = new Map<string, LlamaGrammar>()

  static async open(options: GenerationOptions): Promise<LocalModel> {
    const { name, parameterCount, quantization } = await readFacts(options.modelFile)
    const { llama, model } = await openLlama(options)
    const { sequences, contextTokensMax } = shape(model, options.memoryBytes ?? MEMORY_BYTES_DEFAULT)
    const context = await model.createContext({
      sequences,
      // node-llama-cpp keeps one place of a sequence free.
      contextSize: contextTokensMax + 1,
      // On a processor it sums short decodes in half precision: answers then hang on how many tokens were decoded together.
      flashAttention: llama.gpu === false ? false : "auto",
      // A window that forgets would leave later branches and turns without the start of the text.
      swaFullCache: true,
      threads: options.threads ?? threadsDefault(),
      ...(options.adapterFile === undefined ? {} : { lora: options.adapterFile }),
    })
    const facts = { name, contextTokensMax, parameterCount, quantization }
    return new LocalModel({ llama, model, context, facts }, options.waitingMax ?? WAITING_MAX_DEFAULT)
  }

  private constructor(deps: LocalModelDeps, waitingMax: number) {
    const { llama, model, context, facts } = deps
    this.#llama = llama
    this.model = model
    this.facts = facts
    this.#waitingMax = waitingMax
    const isSmall = model.size <= SMALL_MODEL_BYTES_MAX
    this.temperatureDefault = isSmall ? SMALL_MODEL_TEMPERATURE : TEMPERATURE_DEFAULT
    this.repeatPenaltyDefault = isSmall ? SMALL_MODEL_REPEAT_PENALTY : 1
    this.template = templateFacts(model)
    this.marks = marksOf(this.template.family)
    this.tokenCharactersMax = tokenCharactersMax(model)
    this.#slots = Array.from({ length: context.totalSequences }, () => ({
      sequence: context.getSequence(),
      organizationId: null,
      stale: false,
      endTurn: null,
    }))
  }

  get contextTokensMax(): number {
    return this.facts.contextTokensMax
  }

  get family(): Family {
    return this.template.family
  }

  /** `special` turns the text of a special token into that token: never for text that a caller sent. */
  tokenize(text: string, special: boolean): Token[] {
    return piecesOf(text).flatMap((piece) => this.model.tokenize(piece, special))
  }

  /** A whole prompt begins with the token that the model was trained to see first. */
  withBos(tokens: Token[]): Token[] {
    const { bos, shouldPrependBosToken } = this.model.tokens
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
  }

  /** Waits for a free slot, best one that already holds the start of these tokens. */
  async acquire(organizationId: string, tokens: readonly Token[], signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted()
    const free = this.#best(organizationId, tokens)
    if (free) return this.#take(free, organizationId)
    if (this.#waiting.length >= this.#waitingMax)
      throw new Fault(
        "overloaded",
        `Cannot take the request: ${this.#waiting.length} are waiting; try again later`,
        {
          retryAfterMs: 1000,
        },
      )
    const granted = Promise.withResolvers<Slot>()
    const waiting: Waiting = { organizationId, tokens, grant: granted.resolve }
    this.#waiting.push(waiting)
    const leave = (): void => {
      const index = this.#waiting.indexOf(waiting)
      if (index >= 0) this.#waiting.splice(index, 1)
      granted.reject(signal.reason)
    }
    signal.addEventListener("abort", leave, { once: true })
    try {
      return await granted.promise
    } finally {
      signal.removeEventListener("abort", leave)
    }
  }

  /** The slot goes to the organization that has the fewest and waits the longest; within it, first come, first served. */
  release(slot: Slot): void {
    slot.endTurn?.()
    slot.endTurn = null
    const organizationId = this.#turns.next(this.#waiting.map((one) => one.organizationId))
    const index = this.#waiting.findIndex((one) => one.organizationId === organizationId)
    const [next] = index < 0 ? [] : this.#waiting.splice(index, 1)
    if (next)
      next.grant(this.#take(this.#best(next.organizationId, next.tokens) ?? slot, next.organizationId))
  }

  /** Whether an organization other than this one waits for a slot. */
  isWantedBeside(organizationId: string): boolean {
    return this.#waiting.some((one) => one.organizationId !== organizationId)
  }

  /** Keeps what the slot holds of these tokens, and answers how many that are. */
  async keep(slot: Slot, tokens: readonly Token[]): Promise<number> {
    if (slot.stale) await slot.sequence.clearHistory()
    slot.stale = false
    await slot.sequence.adaptStateToTokens([...tokens], false)
    return slot.sequence.nextTokenIndex
  }

  grammarState(grammar: Grammar, param: string): LlamaGrammarEvaluationState {
    const gbnf = toGbnf(grammar)
    const known = this.#grammars.get(gbnf)
    if (known) return new LlamaGrammarEvaluationState({ model: this.model, grammar: known })
    let made: LlamaGrammar
    try {
      made = new LlamaGrammar(this.#llama, { grammar: gbnf })
    } catch (cause) {
      throw new Fault(
        "invalid_request",
        "Cannot enforce the schema: it is too complex for the model's grammar",
        {
          param,
          cause,
        },
      )
    }
    const [oldest] = this.#grammars.keys()
    if (this.#grammars.size >= GRAMMARS_KEPT_MAX && oldest !== undefined) this.#grammars.delete(oldest)
    this.#grammars.set(gbnf, made)
    return new LlamaGrammarEvaluationState({ model: this.model, grammar: made })
  }

  #best(organizationId: string, tokens: readonly Token[]): Slot | undefined {
    const free = this.#slots.filter(({ endTurn }) => endTurn === null)
    const shared = (slot: Slot): number =>
      slot.organizationId === organizationId
        ? slot.sequence.compareContextTokens([...tokens]).firstDifferentIndex
        : slot.sequence.nextTokenIndex === 0
          ? 0
          : -1
    return free.toSorted((a, b) => shared(b) - shared(a))[0]
  }

  #take(slot: Slot, organizationId: string): Slot {
    slot.endTurn = this.#turns.begin(organizationId)
    if (slot.organizationId !== organizationId) slot.stale = true
    slot.organizationId = organizationId
    return slot
  }
}

async function readFacts(file: string): Promise<ModelFacts> {
  return await readGguf(file).catch((cause: unknown) => {
    throw new Fault("inference_failed", cause instanceof Error ? cause.message : String(cause), { cause })
  })
}

interface LocalModelDeps {
  readonly llama: Llama
  readonly model: LlamaModel
  readonly context: LlamaContext
  readonly facts: ModelFacts
}

/** How many conversations side by side, and how long each may be, within the memory that is given. */
function shape(model: LlamaModel, memoryBytes: number): { sequences: number; contextTokensMax: number } {
  const cells = Math.floor(memoryBytes / bytesPerCell(model))
  const wanted = Math.min(model.trainContextSize, CONTEXT_TOKENS_WANTED)
  let sequences = SLOTS_MAX
  while (sequences > 1 && cells / sequences < wanted) sequences--
  return {
    sequences,
    contextTokensMax: Math.min(model.trainContextSize, Math.max(512, Math.floor(cells / sequences))),
  }
}

function bytesPerCell(model: LlamaModel): number {
  const { block_count, embedding_length, attention } = model.fileInfo.architectureMetadata as {
    block_count?: number
    embedding_length?: number
    attention?: { head_count?: number; head_count_kv?: number | number[]; key_length?: number }
  }
  const layers = block_count ?? 1
  const heads = attention?.head_count ?? 1
  const kv = attention?.head_count_kv ?? heads
  const kvHeads = Array.isArray(kv) ? Math.max(...kv) : kv
  const width = attention?.key_length ?? Math.ceil((embedding_length ?? 1) / heads)
  return layers * kvHeads * width * 2 * BYTES_PER_CELL_VALUE
}

interface Vocabulary {
  readonly texts: readonly string[]
  /** llama.cpp's, by token. */
  readonly types: readonly number[]
}

export function vocabularyOf(model: LlamaModel): Vocabulary {
  const { tokenizer } = model.fileInfo.metadata as {
    tokenizer?: { ggml?: { tokens?: readonly string[]; token_type?: readonly number[] } }
  }
  return { texts: tokenizer?.ggml?.tokens ?? [], types: tokenizer?.ggml?.token_type ?? [] }
}

export function tokenCharactersMax(model: LlamaModel): number {
  return vocabularyOf(model).texts.reduce((most, { length }) => Math.max(most, length), 0) || Infinity
}

function templateFacts(model: LlamaModel): TemplateFacts {
  const { tokenizer } = model.fileInfo.metadata as { tokenizer?: { chat_template?: string } }
  const own = tokenizer?.chat_template
  const template = own === undefined ? undefined : withoutDefaultSystem(own)
  return {
    template,
    family: familyOf(template),
    bosText: model.tokens.bosString ?? "",
    eosText: model.tokens.eosString ?? "",
    controlTexts: controlTexts(vocabularyOf(model)),
  }
}

/** llama.cpp's token types: control, and user-defined (matched in any text, such as <think>). */
export const CONTROL_TOKEN = 3

function controlTexts({ texts, types }: Vocabulary): string[] {
  const control = texts.filter((text, token) => types[token] === CONTROL_TOKEN && text !== "")
  return control.toSorted((a, b) => b.length - a.length)
}

/**
 * Lets generations that run side by side ask for their next tokens together, so that one decode serves all of them. The library decodes again as soon as one generation has asked. The one whose token was sampled last would come too late
 * each time: of four streams only three share a decode.
 */
export class DecodeRounds {
  /** Those that asked for a token and have not got it. */
  readonly #asking = new Set<AsyncIterator<unknown>>()
  #waiting: (() => void)[] = []
  /** Prompts take many decodes: other sequences do not wait for them. */
  #prompts = 0

  /** The source's values; the first of them comes after the prompt. */
  async *of<Value>(source: AsyncIterable<Value>): AsyncGenerator<Value> {
    const values = source[Symbol.asyncIterator]()
    try {
      let step = await this.#first(values)
      while (step.done !== true) {
        yield step.value
        step = await this.#next(values)
      }
    } finally {
      await values.return?.()
    }
  }

  async #first<Value>(values: AsyncIterator<Value>): Promise<IteratorResult<Value>> {
    this.#prompts++
    try {
      return await values.next()
    } finally {
      this.#prompts--
    }
  }

  async #next<Value>(values: AsyncIterator<Value>): Promise<IteratorResult<Value>> {
    this.#asking.add(values)
    let step: IteratorResult<Value>
    try {
      step = await values.next()
    } finally {
      this.#asking.delete(values)
      if (this.#asking.size === 0 || this.#prompts > 0) this.#release()
    }
    if (step.done !== true && this.#asking.size > 0 && this.#prompts === 0)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return step
  }

  #release(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }
}
