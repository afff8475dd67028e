/** A loaded model and its context: tokens, batches, sequences and logits, with every native call in one place. */
import assert from "node:assert/strict"
import koffi from "koffi"
import type { AnswerTokens } from "./answer-tokens.ts"
import { BatchBuffers } from "./batch-buffers.ts"
import type { BatchToken, Decoder, SequenceStates } from "./decoder.ts"
import type { LlamaBackend, LlamaLibrary, NativePointer } from "./library.ts"
import { openLlamaLibrary } from "./library.ts"
import { piecesOf } from "../text-pieces.ts"
import type { StateCalls } from "./sequence-states.ts"
import { DeviceStates, HostStates } from "./sequence-states.ts"

/** llama.cpp's own bound on sequences in one context. */
const SEQUENCES_MAX = 256
/** Tokens of one decode, which is llama.cpp's physical batch too: measured as the best group sizes. */
const BATCH_TOKENS = { cpu: 512, gpu: 2048 } as const
/**
 * Below this many tokens llama.cpp's attention sums in half precision. Smaller decodes are filled up to it, so that an
 * answer does not depend on whether others were decoded beside it: measured on the default model, the furthest
 * difference in probability between a request alone and amid others fell from 0.016 to 0.002.
 */
const FILLED_TOKENS_MIN = 64
const PADDING_SEQUENCE = SEQUENCES_MAX - 1
/** States kept on a GPU at one time; each takes a sequence from the leaves. */
const DEVICE_SLOTS = 32
/** Texts up to this size are tokenised on the calling thread: a hop to another one costs more. */
const SYNCHRONOUS_BYTES_MAX = 4096
/** Cells beyond one full context, for the branches that hang from it: room for so many full decodes. */
const SPARE_DECODES = 2
/**
 * A GPU is filled by few jobs at a time, and more cells only cost it time: every sequence given or taken back looks at
 * all of them, every decode at all that are in use. Measured on an H200, see docs/gpu.md.
 */
const GPU_DECODES = 4
/**
 * The same on a processor, where a decode looks at every cell in use for each of its tokens: 200 small requests at one time
 * took 1.3 times as long when as many ran as there were cells.
 */
const CPU_DECODES = 1
const GGML_TYPE_F16 = 1
const FLASH_ATTENTION_ON = 1
const KV_ELEMENT_BYTES = 2

interface ModelOptions {
  readonly file: string
  readonly backend: LlamaBackend
  /** A folder with a build of llama.cpp to use instead of an installed package. */
  readonly libraryDir?: string
}

interface ContextOptions {
  readonly threads: number
  /** How much memory the key-value cells may take; one full context always fits, whatever this says. */
  readonly memoryBytes: number
  /** Shortens the context below what the model was trained for. */
  readonly contextTokensMax?: number
  /** Width of all key and value heads of one layer together, for the size of a cell. */
  readonly keyValueWidth: number
  /** Instead of the size that was measured as best for where the model runs. */
  readonly batchTokensMax?: number
  /** Path of a LoRA adapter, a GGUF file. */
  readonly adapterFile?: string
  /** How much memory the states of sequences kept on a GPU may take; 0 or absent keeps none there. */
  readonly deviceStatesBytes?: number
}

export class LlamaModel {
  readonly library: LlamaLibrary
  readonly handle: NativePointer
  readonly vocabulary: NativePointer
  readonly vocabularySize: number
  /** Whether its layers lie on a GPU. */
  readonly onGpu: boolean

  private constructor(library: LlamaLibrary, handle: NativePointer, onGpu: boolean) {
    this.library = library
    this.handle = handle
    this.onGpu = onGpu
    this.vocabulary = library.vocabularyOf(handle)
    this.vocabularySize = library.vocabularySize(this.vocabulary)
  }

  static async load(options: ModelOptions): Promise<LlamaModel> {
    const library = openLlamaLibrary(options.backend, options.libraryDir)
    const onGpu = options.backend !== "cpu" && library.hasGpu()
    const parameters = library.modelDefaults()
    parameters.n_gpu_layers = onGpu ? -1 : 0
    if (!onGpu) parameters.devices = emptyDeviceList()
    const handle = await called<NativePointer | null>((done) =>
      library.loadModel.async(options.file, parameters, done),
    )
    if (handle === null) throw new Error("Cannot load the model: llama.cpp does not accept the file")
    const model = new LlamaModel(library, handle, onGpu)
    const refusal = model.#refusal()
    if (refusal === undefined) return model
    model.close()
    throw new Error(`Cannot score with this model: ${refusal}; use a decoder-only attention model`)
  }

  /** Branches share and trim the memory of a prefix, which only attention over a key-value cache can do. */
  #refusal(): string | undefined {
    if (this.library.isRecurrent(this.handle)) return "it is recurrent"
    if (this.library.isHybrid(this.handle)) return "it is partly recurrent"
    if (this.library.hasEncoder(this.handle)) return "it has an encoder"
    return undefined
  }

  get addsBos(): boolean {
    return this.library.addsBos(this.vocabulary)
  }

  get bosToken(): number {
    return this.library.bosToken(this.vocabulary)
  }

  get trainedContext(): number {
    return this.library.trainedContext(this.handle)
  }

  tokenText(token: number): string {
    return this.library.tokenText(this.vocabulary, token) ?? ""
  }

  isControlToken(token: number): boolean {
    return this.library.isControlToken(this.vocabulary, token)
  }

  /** `parseSpecial` turns the spelling of a special token into that token: never for text that a caller sent. */
  async tokenize(text: string, parseSpecial: boolean): Promise<Int32Array> {
    const pieces = piecesOf(text)
    if (pieces.length === 1) return await this.#tokenizePiece(text, parseSpecial)
    const parts: Int32Array[] = []
    for (const piece of pieces) parts.push(await this.#tokenizePiece(piece, parseSpecial))
    return joined(parts)
  }

  async #tokenizePiece(text: string, parseSpecial: boolean): Promise<Int32Array> {
    const bytes = Buffer.from(text, "utf8")
    if (bytes.length <= SYNCHRONOUS_BYTES_MAX) return this.tokenizeNow(bytes, parseSpecial)
    const tokens = tokenSpace(bytes)
    const { library, vocabulary } = this
    const count = await called<number>((done) =>
      library.tokenize.async(
        vocabulary,
        bytes,
        bytes.length,
        tokens,
        tokens.length,
        false,
        parseSpecial,
        done,
      ),
    )
    return filled(tokens, count)
  }

  tokenizeNow(bytes: Buffer, parseSpecial: boolean): Int32Array {
    const tokens = tokenSpace(bytes)
    const { library, vocabulary } = this
    const count = library.tokenize(
      vocabulary,
      bytes,
      bytes.length,
      tokens,
      tokens.length,
      false,
      parseSpecial,
    )
    return filled(tokens, count)
  }

  close(): void {
    this.library.freeModel(this.handle)
  }
}

/** With a GPU in sight llama.cpp keeps weights where that could read them, in a layout that slows the processor down. */
function emptyDeviceList(): NativePointer {
  const list: NativePointer = koffi.alloc("void *", 1)
  koffi.encode(list, "void *", null)
  return list
}

/** No token is shorter than a byte; a tokenizer may add a space in front. */
const tokenSpace = (bytes: Buffer): Int32Array => new Int32Array(bytes.length + 8)

function filled(tokens: Int32Array, count: number): Int32Array {
  assert(count >= 0, `llama_tokenize needs room for ${-count} tokens and got ${tokens.length}`)
  return tokens.slice(0, count)
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0))
  let used = 0
  for (const part of parts) {
    all.set(part, used)
    used += part.length
  }
  return all
}

/** One context with a unified key-value cache; its calls must not overlap. */
export class LlamaContext implements Decoder {
  readonly contextTokensMax: number
  readonly cellsMax: number
  readonly cellsUseful: number
  readonly sequencesMax: number
  readonly batchTokensMax: number
  readonly states: SequenceStates
  readonly #library: LlamaLibrary
  readonly #handle: NativePointer
  readonly #memory: NativePointer
  readonly #answers: AnswerTokens
  readonly #batch: BatchBuffers
  #decodingSinceMs: number | undefined

  private constructor(model: LlamaModel, handle: NativePointer, shape: ContextShape, answers: AnswerTokens) {
    this.#library = model.library
    this.#handle = handle
    this.#memory = model.library.memoryOf(handle)
    this.#answers = answers
    this.#batch = new BatchBuffers(shape.batchTokensMax, SEQUENCES_MAX)
    this.contextTokensMax = shape.contextTokensMax
    this.cellsMax = shape.cellsMax
    this.cellsUseful = shape.cellsUseful
    this.batchTokensMax = shape.batchTokensMax
    const slots = shape.deviceStatesBytes > 0 ? DEVICE_SLOTS : 0
    this.sequencesMax = PADDING_SEQUENCE - slots
    this.states =
      slots === 0
        ? new HostStates(this.#stateCalls())
        : new DeviceStates(this.#stateCalls(), {
            firstSequence: this.sequencesMax,
            slots,
            bytesMax: shape.deviceStatesBytes,
          })
  }

  #stateCalls(): StateCalls {
    const [library, handle] = [this.#library, this.#handle]
    return {
      bytes: (sequence, flags) => library.stateBytes(handle, sequence, flags),
      save: (into, sequence, flags) =>
        called((done) => library.saveState.async(handle, into, into.length, sequence, flags, done)),
      restore: (from, sequence, flags) =>
        called((done) => library.restoreState.async(handle, from, from.length, sequence, flags, done)),
      copy: (from, to, end) => this.copySequence(from, to, 0, end),
      remove: (sequence) => this.removeSequence(sequence, 0),
    }
  }

  static async create(
    model: LlamaModel,
    answers: AnswerTokens,
    options: ContextOptions,
  ): Promise<LlamaContext> {
    const shape = contextShape(model, options)
    const parameters = model.library.contextDefaults()
    Object.assign(parameters, {
      n_ctx: shape.cellsMax,
      n_batch: shape.batchTokensMax,
      n_ubatch: shape.batchTokensMax,
      n_seq_max: SEQUENCES_MAX,
      n_outputs_max: SEQUENCES_MAX,
      n_threads: options.threads,
      n_threads_batch: options.threads,
      flash_attn_type: FLASH_ATTENTION_ON,
      type_k: GGML_TYPE_F16,
      type_v: GGML_TYPE_F16,
      // A window that forgets would leave later branches without the start of the evidence.
      swa_full: true,
      kv_unified: true,
      offload_kqv: model.onGpu,
      op_offload: model.onGpu,
    })
    const handle = await called<NativePointer | null>((done) =>
      model.library.createContext.async(model.handle, parameters, done),
    )
    if (handle === null) {
      throw new Error(
        `Cannot create a context of ${shape.cellsMax} cells: not enough memory; lower the memory setting`,
      )
    }
    if (options.adapterFile !== undefined) await applyAdapter(model, handle, options.adapterFile)
    return new LlamaContext(model, handle, shape, answers)
  }

  async decode(batch: readonly BatchToken[]): Promise<void> {
    this.#decodingSinceMs = performance.now()
    try {
      await this.#decodeNow(batch)
    } finally {
      this.#decodingSinceMs = undefined
    }
  }

  async #decodeNow(batch: readonly BatchToken[]): Promise<void> {
    const filling = padding(batch.length)
    const native = this.#batch.write(filling.length === 0 ? batch : [...batch, ...filling])
    const status = await called<number>((done) => this.#library.decode.async(this.#handle, native, done))
    if (status !== 0) throw new Error(`llama_decode of ${batch.length} tokens answered ${status}`)
    // On a GPU the work is only queued by now; waiting on another thread keeps this one free.
    await called<void>((done) => this.#library.synchronize.async(this.#handle, done))
    if (filling.length > 0) this.removeSequence(PADDING_SEQUENCE, 0)
  }

  decodingMs(): number {
    return this.#decodingSinceMs === undefined ? 0 : performance.now() - this.#decodingSinceMs
  }

  difference(batchIndex: number): number {
    const logits = this.#library.logitsAt(this.#handle, batchIndex)
    assert(logits !== null, `no logits at ${batchIndex}`)
    return logSumExp(readLogits(logits, this.#answers.yes)) - logSumExp(readLogits(logits, this.#answers.no))
  }

  copySequence(from: number, to: number, start: number, end: number): void {
    this.#library.copySequence(this.#memory, from, to, start, end)
  }

  removeSequence(sequence: number, start: number): void {
    const removed = this.#library.removeSequence(this.#memory, sequence, start, -1)
    assert(removed, `llama.cpp cannot remove part of sequence ${sequence}`)
  }

  clear(): void {
    this.#library.clearMemory(this.#memory, false)
  }

  close(): void {
    this.#library.freeContext(this.#handle)
  }
}

/** Tokens of no meaning after the last one, in a sequence that no other token sees. */
function padding(tokenCount: number): BatchToken[] {
  return Array.from({ length: Math.max(0, FILLED_TOKENS_MIN - tokenCount) }, (_, position) => ({
    token: 0,
    position,
    sequences: [PADDING_SEQUENCE],
    output: false,
  }))
}

interface ContextShape {
  readonly contextTokensMax: number
  readonly cellsMax: number
  readonly cellsUseful: number
  readonly batchTokensMax: number
  readonly deviceStatesBytes: number
}

function contextShape(model: LlamaModel, options: ContextOptions): ContextShape {
  const contextTokensMax = Math.min(model.trainedContext, options.contextTokensMax ?? model.trainedContext)
  const cellBytes = model.library.layerCount(model.handle) * 2 * options.keyValueWidth * KV_ELEMENT_BYTES
  const batchTokensMax = options.batchTokensMax ?? BATCH_TOKENS[model.onGpu ? "gpu" : "cpu"]
  const needed = contextTokensMax + SPARE_DECODES * batchTokensMax
  const cellsUseful = (model.onGpu ? GPU_DECODES : CPU_DECODES) * batchTokensMax
  // On a processor every organization has use for its own.
  const cellsMost = model.onGpu ? cellsUseful : Number.POSITIVE_INFINITY
  const wanted = Math.max(Math.min(Math.floor(options.memoryBytes / cellBytes), cellsMost), needed)
  // llama.cpp rounds the cells up to a multiple of 256; doing it here keeps our count of them exact.
  const cellsMax = Math.ceil(wanted / 256) * 256
  const deviceStatesBytes = options.deviceStatesBytes ?? 0
  return { contextTokensMax, cellsMax, cellsUseful, batchTokensMax, deviceStatesBytes }
}

function readLogits(logits: NativePointer, tokens: readonly number[]): number[] {
  return tokens.map((token): number => koffi.decode(logits, token * Float32Array.BYTES_PER_ELEMENT, "float"))
}

function logSumExp(values: readonly number[]): number {
  const peak = Math.max(...values)
  let sum = 0
  for (const value of values) sum += Math.exp(value - peak)
  return peak + Math.log(sum)
}

/** Koffi does not hold the memory that it was given: the callback does, whose scope reaches `start` and what that names. */
function called<Result>(
  start: (done: (error: Error | null, result: Result) => void) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    start((error, result) => (error === null ? resolve(result) : reject(error)))
  })
}

async function applyAdapter(model: LlamaModel, context: NativePointer, file: string): Promise<void> {
  const { library } = model
  const adapter = await called<NativePointer | null>((done) =>
    library.loadAdapter.async(model.handle, file, done),
  )
  if (adapter === null || library.setAdapters(context, [adapter], 1, [1]) !== 0)
    throw new Error("Cannot load the adapter: llama.cpp does not accept it for this model")
}
