/**
 * Writes GGUF files of random weights: models of a known shape that answer nonsense, always the same for one seed.
 *
 * node scripts/random-gguf.ts <kind> <file> [seed]
 */
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs"
import path from "node:path"
import { pathToFileURL } from "node:url"

type TensorType = "F32" | "F16" | "Q8_0"

interface Shape {
  readonly width: number
  readonly feedForward: number
  readonly layers: number
  readonly heads: number
  readonly keyValueHeads: number
  readonly context: number
  readonly weights: TensorType
  /** How text is split before its parts become tokens, by llama.cpp's name; as Qwen 2 does where not said. */
  readonly splitting?: string
  /** The vocabulary is padded with unused tokens to this size. */
  readonly vocabularyMin: number
  readonly tiedOutput: boolean
}

const TINY = {
  width: 256,
  feedForward: 768,
  layers: 4,
  heads: 4,
  keyValueHeads: 2,
  context: 32_768,
  vocabularyMin: 0,
  tiedOutput: false,
} as const

const MICRO = {
  width: 64,
  feedForward: 64,
  layers: 1,
  heads: 1,
  keyValueHeads: 1,
  context: 1_048_576,
  weights: "F32",
  vocabularyMin: 0,
  tiedOutput: true,
} as const

export const randomModelShapes = {
  "tiny-f16": { ...TINY, weights: "F16" },
  "tiny-f32": { ...TINY, weights: "F32" },
  // For tests of limits: a million tokens of context at almost no work per token.
  "micro-long": MICRO,
  // For many short answers.
  "micro-short": { ...MICRO, context: 4096 },
  // Its tokenizer splits text with a regular expression, as those of many families do.
  "micro-regex": { ...MICRO, splitting: "bloom" },
  // The shape of a common half-billion-parameter model, for measurements.
  "qwen05-q8": {
    width: 896,
    feedForward: 4864,
    layers: 24,
    heads: 14,
    keyValueHeads: 2,
    context: 32_768,
    weights: "Q8_0",
    vocabularyMin: 151_936,
    tiedOutput: true,
  },
} as const satisfies Record<string, Shape>

export type RandomModelKind = keyof typeof randomModelShapes

/** Appears under its final name only when complete, so that an interrupted run leaves no half file behind. */
export function writeRandomModel(kind: RandomModelKind, file: string, seed = 1, given?: Vocabulary): void {
  const shape: Shape = randomModelShapes[kind]
  const vocabulary = given ?? makeVocabulary(shape.vocabularyMin)
  const tensors = listTensors(shape, vocabulary.tokens.length)
  writeWhole(file, header(kind, shape, vocabulary, tensors), tensors, seed)
}

const ADAPTER_RANK = 4

/** A LoRA adapter of a random model: of its feed-forward networks, of the strength given. At zero it changes nothing. */
export function writeRandomAdapter(kind: RandomModelKind, file: string, strength = 1, seed = 1): void {
  const shape: Shape = randomModelShapes[kind]
  const tensors = listTensors(shape, 0)
    .filter(({ name }) => /\.ffn_(?:up|down)\.weight$/.test(name))
    .flatMap(({ name, dimensions: [rows = 0, columns = 0] }): Tensor[] => [
      { name: `${name}.lora_a`, dimensions: [rows, ADAPTER_RANK], type: "F32", spread: 1 / Math.sqrt(rows) },
      { name: `${name}.lora_b`, dimensions: [ADAPTER_RANK, columns], type: "F32", spread: strength },
    ])
  const entries = [
    textEntry("general.architecture", "qwen2"),
    textEntry("general.type", "adapter"),
    textEntry("general.name", `random-${kind}-adapter`),
    textEntry("adapter.type", "lora"),
    floatEntry("adapter.lora.alpha", ADAPTER_RANK),
  ]
  writeWhole(file, headerOf(entries, tensors), tensors, seed)
}

function writeWhole(file: string, head: Buffer, tensors: readonly Tensor[], seed: number): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const unfinished = `${file}.${process.pid}.part`
  const target = openSync(unfinished, "w")
  try {
    writeSync(target, head)
    const random = new Random(seed)
    for (const tensor of tensors) writeSync(target, fillTensor(tensor, random))
  } finally {
    closeSync(target)
  }
  renameSync(unfinished, file)
}

export interface Vocabulary {
  readonly tokens: readonly string[]
  readonly types: readonly number[]
  readonly merges: readonly string[]
  readonly endOfText: number
  readonly endOfTurn: number
}

const NORMAL_TOKEN = 1
const CONTROL_TOKEN = 3
const UNUSED_TOKEN = 5

/** Words that are one token each; everything else is spelled in bytes. */
const WORDS = [
  ..."yes no Yes No the of and to in is that for it this question answer text with on as was are not".split(
    " ",
  ),
  ..."by from or an be at which customer ticket about Question Answer Proposed correct rating level".split(
    " ",
  ),
]

function makeVocabulary(sizeMin: number): Vocabulary {
  const letters = byteLetters()
  const tokens = [...letters]
  const merges: string[] = []
  const known = new Set(tokens)
  for (const word of WORDS.flatMap((word) => [word, ` ${word}`])) {
    let merged = ""
    for (const byte of Buffer.from(word, "utf8")) {
      const letter = letters[byte] ?? ""
      if (merged !== "" && !known.has(merged + letter)) {
        merges.push(`${merged} ${letter}`)
        tokens.push(merged + letter)
        known.add(merged + letter)
      }
      merged += letter
    }
  }
  const types = tokens.map(() => NORMAL_TOKEN)
  const addSpecial = (text: string): number => {
    types.push(CONTROL_TOKEN)
    return tokens.push(text) - 1
  }
  const endOfText = addSpecial("<|endoftext|>")
  addSpecial("<|im_start|>")
  const endOfTurn = addSpecial("<|im_end|>")
  while (tokens.length < sizeMin) {
    types.push(UNUSED_TOKEN)
    tokens.push(`[UNUSED${tokens.length}]`)
  }
  return { tokens, types, merges, endOfText, endOfTurn }
}

/** Byte-level vocabularies give every byte a printable letter: itself where it is one, else one from 256 on. */
function byteLetters(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    return String.fromCodePoint(printable ? byte : next++)
  })
}

interface Tensor {
  readonly name: string
  readonly dimensions: readonly number[]
  readonly type: TensorType
  /** Standard deviation of the weights; undefined makes them all one. */
  readonly spread: number | undefined
}

function vector(name: string, size: number, spread?: number): Tensor {
  return { name, dimensions: [size], type: "F32", spread }
}

function listTensors(shape: Shape, vocabularySize: number): Tensor[] {
  const { width, feedForward, weights, tiedOutput } = shape
  const keyValueWidth = (width / shape.heads) * shape.keyValueHeads
  const matrix = (name: string, rows: number, columns: number, gain = 1): Tensor => ({
    name,
    dimensions: [rows, columns],
    type: weights,
    spread: gain / Math.sqrt(rows),
  })
  const layer = (index: number): Tensor[] => {
    const named = (part: string): string => `blk.${index}.${part}`
    return [
      vector(named("attn_norm.weight"), width),
      matrix(named("attn_q.weight"), width, width, 1.5),
      matrix(named("attn_k.weight"), width, keyValueWidth, 1.5),
      matrix(named("attn_v.weight"), width, keyValueWidth),
      vector(named("attn_q.bias"), width, 0.1),
      vector(named("attn_k.bias"), keyValueWidth, 0.1),
      vector(named("attn_v.bias"), keyValueWidth, 0.1),
      matrix(named("attn_output.weight"), width, width),
      vector(named("ffn_norm.weight"), width),
      matrix(named("ffn_gate.weight"), width, feedForward),
      matrix(named("ffn_up.weight"), width, feedForward),
      matrix(named("ffn_down.weight"), feedForward, width),
    ]
  }
  const embedding = matrix("token_embd.weight", width, vocabularySize)
  return [
    { ...embedding, spread: tiedOutput ? 0.06 : 1 },
    ...Array.from({ length: shape.layers }, (_, index) => layer(index)).flat(),
    vector("output_norm.weight", width),
    ...(tiedOutput ? [] : [matrix("output.weight", width, vocabularySize)]),
  ]
}

const ALIGNMENT_BYTES = 32
const TYPE_NUMBERS = { F32: 0, F16: 1, Q8_0: 8 } as const
const FILE_TYPES = { F32: 0, F16: 1, Q8_0: 7 } as const
const TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

function header(
  kind: RandomModelKind,
  shape: Shape,
  vocabulary: Vocabulary,
  tensors: readonly Tensor[],
): Buffer {
  const entries = [
    textEntry("general.architecture", "qwen2"),
    textEntry("general.name", `random-${kind}`),
    numberEntry("general.file_type", FILE_TYPES[shape.weights]),
    numberEntry("qwen2.block_count", shape.layers),
    numberEntry("qwen2.context_length", shape.context),
    numberEntry("qwen2.embedding_length", shape.width),
    numberEntry("qwen2.feed_forward_length", shape.feedForward),
    numberEntry("qwen2.attention.head_count", shape.heads),
    numberEntry("qwen2.attention.head_count_kv", shape.keyValueHeads),
    floatEntry("qwen2.attention.layer_norm_rms_epsilon", 1e-6),
    floatEntry("qwen2.rope.freq_base", 1e6),
    textEntry("tokenizer.ggml.model", "gpt2"),
    textEntry("tokenizer.ggml.pre", shape.splitting ?? "qwen2"),
    textsEntry("tokenizer.ggml.tokens", vocabulary.tokens),
    numbersEntry("tokenizer.ggml.token_type", vocabulary.types),
    textsEntry("tokenizer.ggml.merges", vocabulary.merges),
    numberEntry("tokenizer.ggml.bos_token_id", vocabulary.endOfText),
    numberEntry("tokenizer.ggml.eos_token_id", vocabulary.endOfTurn),
    numberEntry("tokenizer.ggml.padding_token_id", vocabulary.endOfText),
    Buffer.concat([text("tokenizer.ggml.add_bos_token"), uint32(7), Buffer.from([0])]),
    textEntry("tokenizer.chat_template", TEMPLATE),
  ]
  return headerOf(entries, tensors)
}

function headerOf(entries: readonly Buffer[], tensors: readonly Tensor[]): Buffer {
  let offset = 0
  const places = tensors.map((tensor) => {
    const place = Buffer.concat([
      text(tensor.name),
      uint32(tensor.dimensions.length),
      ...tensor.dimensions.map(uint64),
      uint32(TYPE_NUMBERS[tensor.type]),
      uint64(offset),
    ])
    offset += aligned(byteCount(tensor))
    return place
  })
  const start = [Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(entries.length)]
  const whole = Buffer.concat([...start, ...entries, ...places])
  return Buffer.concat([whole, Buffer.alloc(aligned(whole.length) - whole.length)])
}

function fillTensor(tensor: Tensor, random: Random): Buffer {
  const bytes = Buffer.alloc(aligned(byteCount(tensor)))
  const count = elementCount(tensor)
  // Uniform numbers of this half-width have the wanted standard deviation.
  const reach = (tensor.spread ?? 0) * Math.sqrt(3)
  if (tensor.type === "F32") {
    for (let index = 0; index < count; index++) {
      bytes.writeFloatLE(tensor.spread === undefined ? 1 : reach * random.signed(), index * 4)
    }
  } else if (tensor.type === "F16") {
    const halves = new Float16Array(bytes.buffer, bytes.byteOffset, count)
    for (let index = 0; index < count; index++) halves[index] = reach * random.signed()
  } else {
    fillBlocks(bytes, count, reach, random)
  }
  return bytes
}

const BLOCK_ELEMENTS = 32
const BLOCK_BYTES = 34

/** Q8_0: a half-precision scale and 32 signed bytes per block. */
function fillBlocks(bytes: Buffer, count: number, reach: number, random: Random): void {
  const scale = Buffer.from(Float16Array.of(reach / 127).buffer)
  for (let block = 0; block < count / BLOCK_ELEMENTS; block++) {
    const start = block * BLOCK_BYTES
    scale.copy(bytes, start)
    for (let word = 0; word < BLOCK_ELEMENTS; word += 4) bytes.writeUInt32LE(random.next(), start + 2 + word)
  }
}

const elementCount = (tensor: Tensor): number =>
  tensor.dimensions.reduce((product, size) => product * size, 1)

function byteCount(tensor: Tensor): number {
  const count = elementCount(tensor)
  if (tensor.type === "Q8_0") return (count / BLOCK_ELEMENTS) * BLOCK_BYTES
  return count * (tensor.type === "F32" ? 4 : 2)
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8")
  return Buffer.concat([uint64(bytes.length), bytes])
}

const textEntry = (key: string, value: string): Buffer => Buffer.concat([text(key), uint32(8), text(value)])
const numberEntry = (key: string, value: number): Buffer =>
  Buffer.concat([text(key), uint32(4), uint32(value)])

function floatEntry(key: string, value: number): Buffer {
  return Buffer.concat([text(key), uint32(6), Buffer.from(Float32Array.of(value).buffer)])
}

function textsEntry(key: string, values: readonly string[]): Buffer {
  return Buffer.concat([text(key), uint32(9), uint32(8), uint64(values.length), ...values.map(text)])
}

function numbersEntry(key: string, values: readonly number[]): Buffer {
  const bytes = Buffer.from(Int32Array.from(values).buffer)
  return Buffer.concat([text(key), uint32(9), uint32(5), uint64(values.length), bytes])
}

/** Xorshift: quick, repeatable, and good enough for weights that mean nothing. */
class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 2_654_435_761) >>> 0 || 1
  }

  next(): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state >>> 0
    return this.#state
  }

  /** Between -1 and 1. */
  signed(): number {
    return this.next() / 2 ** 31 - 1
  }
}

function isKind(kind: string | undefined): kind is RandomModelKind {
  return kind !== undefined && Object.hasOwn(randomModelShapes, kind)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [, , kind, file, seed = "1"] = process.argv
  if (!isKind(kind) || file === undefined) {
    console.error(`Usage: random-gguf.ts <${Object.keys(randomModelShapes).join("|")}> <file> [seed]`)
    process.exit(2)
  }
  writeRandomModel(kind, file, Number(seed))
}
