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
import { Fault } from "../../contract/errors.ts"
import { withoutDefaultSystem } from "../chat-template.ts"
import type { TemplateFacts } from "./chat-prompt.ts"
import { DecodeRounds } from "./decode-rounds.ts"
import { type Family, familyOf, marksOf } from "./families.ts"

const SLOTS_MAX = 8
/** Fewer slots are opened rather than contexts shorter than this. */
const CONTEXT_TOKENS_WANTED = 8192
const GRAMMARS_KEPT_MAX = 64
const BYTES_PER_CELL_VALUE = 2

export interface Slot {
  readonly sequence: LlamaContextSequence
  /** Whose conversation it holds: another organization never starts from it. */
  organizationId: string | null
  /** Holds another organization's conversation, which must be wiped first. */
  stale: boolean
  busy: boolean
}

export interface GenerationOptions {
  readonly modelFile: string
  /** Path of a LoRA adapter of the model. */
  readonly adapterFile?: string
  readonly kind: "generation" | "embedding"
  readonly threads?: number
  /** Memory for the text of requests that run. */
  readonly memoryBytes: number
  readonly waitingMax: number
  readonly gpu: boolean
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

export async function openLlama(
  options: Pick<GenerationOptions, "modelFile" | "threads" | "gpu">,
): Promise<{ llama: Llama; model: LlamaModel }> {
  const threads = options.threads ?? threadsDefault()
  const llama = await getLlama({
    gpu: options.gpu ? "auto" : false,
    // Only what npm installed is used: nothing is downloaded or compiled.
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    logger: (_level, message) => void process.stderr.write(`${message}\n`),
    maxThreads: threads,
  })
  const model = await llama.loadModel({ modelPath: options.modelFile })
  return { llama, model }
}

/** What a request that names no temperature gets: small models wander at 1, very small ones at anything above 0. */
const TEMPERATURE_DEFAULT = 0.7
const SMALL_MODEL_TEMPERATURE = 0
const SMALL_MODEL_BYTES_MAX = 512 * 1024 * 1024

export class LocalModel {
  readonly model: LlamaModel
  readonly contextTokensMax: number
  readonly temperatureDefault: number
  readonly template: TemplateFacts
  readonly marks: ReadonlySet<string>
  readonly rounds = new DecodeRounds()
  readonly #llama: Llama
  readonly #slots: Slot[]
  readonly #waiting: Waiting[] = []
  readonly #waitingMax: number
  readonly #grammars = new Map<string, LlamaGrammar>()

  static async open(options: GenerationOptions): Promise<LocalModel> {
    const { llama, model } = await openLlama(options)
    const { sequences, contextSize } = shape(model, options.memoryBytes)
    const context = await model.createContext({
      sequences,
      contextSize,
      flashAttention: "auto",
      threads: options.threads ?? threadsDefault(),
      ...(options.adapterFile === undefined ? {} : { lora: options.adapterFile }),
    })
    return new LocalModel(llama, model, context, options.waitingMax)
  }

  private constructor(llama: Llama, model: LlamaModel, context: LlamaContext, waitingMax: number) {
    this.#llama = llama
    this.model = model
    this.#waitingMax = waitingMax
    this.temperatureDefault =
      model.size <= SMALL_MODEL_BYTES_MAX ? SMALL_MODEL_TEMPERATURE : TEMPERATURE_DEFAULT
    this.contextTokensMax = Math.min(context.contextSize, model.trainContextSize)
    this.template = templateFacts(model)
    this.marks = marksOf(this.template.family)
    this.#slots = Array.from({ length: context.totalSequences }, () => ({
      sequence: context.getSequence(),
      organizationId: null,
      stale: false,
      busy: false,
    }))
  }

  get family(): Family {
    return this.template.family
  }

  /** Waits for a free slot, best one that already holds the start of these tokens. */
  async acquire(organizationId: string, tokens: readonly Token[], signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted()
    const free = this.#best(organizationId, tokens)
    if (free) return taken(free, organizationId)
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

  /** The slot goes to the organization that has the fewest; within it, first come, first served. */
  release(slot: Slot): void {
    slot.busy = false
    const running = (id: string): number =>
      this.#slots.filter(({ busy, organizationId }) => busy && organizationId === id).length
    const next = this.#waiting.toSorted((a, b) => running(a.organizationId) - running(b.organizationId))[0]
    if (!next) return
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    next.grant(taken(this.#best(next.organizationId, next.tokens) ?? slot, next.organizationId))
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
    const free = this.#slots.filter(({ busy }) => !busy)
    const shared = (slot: Slot): number =>
      slot.organizationId === organizationId
        ? slot.sequence.compareContextTokens([...tokens]).firstDifferentIndex
        : slot.sequence.nextTokenIndex === 0
          ? 0
          : -1
    return free.toSorted((a, b) => shared(b) - shared(a))[0]
  }
}

function taken(slot: Slot, organizationId: string): Slot {
  slot.busy = true
  if (slot.organizationId !== organizationId) slot.stale = true
  slot.organizationId = organizationId
  return slot
}

/** How many conversations side by side, and how long each may be, within the memory that is given. */
function shape(model: LlamaModel, memoryBytes: number): { sequences: number; contextSize: number } {
  const cells = Math.floor(memoryBytes / bytesPerCell(model))
  const wanted = Math.min(model.trainContextSize, CONTEXT_TOKENS_WANTED)
  let sequences = SLOTS_MAX
  while (sequences > 1 && cells / sequences < wanted) sequences--
  return {
    sequences,
    contextSize: Math.min(model.trainContextSize, Math.max(512, Math.floor(cells / sequences))),
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

function templateFacts(model: LlamaModel): TemplateFacts {
  const { tokenizer } = model.fileInfo.metadata as {
    tokenizer?: {
      chat_template?: string
      ggml?: { tokens?: readonly string[]; token_type?: readonly number[] }
    }
  }
  const own = tokenizer?.chat_template
  const template = own === undefined ? undefined : withoutDefaultSystem(own)
  return {
    template,
    family: familyOf(template),
    bosText: model.tokens.bosString ?? "",
    eosText: model.tokens.eosString ?? "",
    controlTexts: controlTexts(tokenizer?.ggml?.tokens ?? [], tokenizer?.ggml?.token_type ?? []),
  }
}

/** llama.cpp's token types: control, and user-defined (matched in any text, such as <think>). */
const CONTROL_TOKEN = 3

function controlTexts(tokens: readonly string[], types: readonly number[]): string[] {
  const texts = tokens.filter((text, index) => types[index] === CONTROL_TOKEN && text !== "")
  return texts.toSorted((a, b) => b.length - a.length)
}
