/** Reads what a GGUF file says about itself, without loading it and without trusting it. */
import { type FileHandle, open } from "node:fs/promises"
import type { ModelFacts } from "./engine.ts"

const WINDOW_BYTES = 1 << 20
const STRING_BYTES_MAX = 16 << 20
const ENTRIES_MAX = 1 << 16
const ARRAY_LENGTH_MAX = 1 << 24
const TENSORS_MAX = 1 << 17
const DIMENSIONS_MAX = 8
/** Longer arrays (the vocabulary, its merges) are walked over, not kept. */
const KEPT_ARRAY_LENGTH_MAX = 1024

interface GgufSummary extends ModelFacts {
  readonly architecture: string
  readonly chatTemplate: string | undefined
  /** Where the last tensor ends: a shorter file is truncated. */
  readonly fileBytesMin: number
  /** Dimensions by name. */
  readonly tensors: TensorShapes
}

export type TensorShapes = ReadonlyMap<string, readonly number[]>

type Value = string | number | boolean | Value[] | undefined

export async function readGguf(file: string): Promise<GgufSummary> {
  return await withFile(file, "model", async (reader) => await readContents(reader, "model", summarize))
}

/** What a LoRA adapter says of itself. */
interface AdapterSummary {
  /** Of the models that it fits. */
  readonly architecture: string
  readonly fileBytesMin: number
  readonly tensors: TensorShapes
}

export async function readAdapter(file: string): Promise<AdapterSummary> {
  return await withFile(file, "adapter", async (reader) => {
    const read = await readContents(reader, "adapter", (entries) => ({
      architecture: text(entries, "general.architecture") ?? "unknown",
      isAdapter: text(entries, "general.type") === "adapter" && text(entries, "adapter.type") === "lora",
    }))
    if (!read.isAdapter) throw new Error("Cannot read the adapter file: it is not a LoRA adapter")
    return read
  })
}

type FileKind = "model" | "adapter"

async function withFile<Result>(
  file: string,
  kind: FileKind,
  read: (reader: Reader) => Promise<Result>,
): Promise<Result> {
  let handle: FileHandle
  try {
    handle = await open(file, "r")
  } catch (error) {
    throw new Error(`Cannot read the ${kind} file: it does not exist or is not readable`, { cause: error })
  }
  try {
    return await read(new Reader(handle))
  } finally {
    await handle.close()
  }
}

async function readContents<Summary>(
  reader: Reader,
  kind: FileKind,
  summarizeEntries: (entries: ReadonlyMap<string, Value>, parameterCount: number) => Summary,
): Promise<Summary & Pick<GgufSummary, "fileBytesMin" | "tensors">> {
  const magic = await reader.bytes(4).catch(() => Buffer.alloc(4))
  if (magic.toString("latin1") !== "GGUF")
    throw new Error(`Cannot read the ${kind} file: it is not a GGUF file`)
  try {
    const version = await reader.uint32()
    if (version < 2 || version > 3) throw new Error(`version ${version} is not supported`)
    const tensorCount = await reader.count(TENSORS_MAX)
    const entries = await readEntries(reader, await reader.count(ENTRIES_MAX))
    const { parameterCount, bytes, tensors } = await readTensors(reader, tensorCount)
    const alignment = numeric(entries, "general.alignment") ?? ALIGNMENT_DEFAULT
    const fileBytesMin = Math.ceil(reader.position / alignment) * alignment + bytes
    return { ...summarizeEntries(entries, parameterCount), fileBytesMin, tensors }
  } catch (error) {
    throw new Error(
      `Cannot read the ${kind} file: it is damaged (${error instanceof Error ? error.message : "unknown"})`,
      {
        cause: error,
      },
    )
  }
}

async function readEntries(reader: Reader, count: number): Promise<Map<string, Value>> {
  const entries = new Map<string, Value>()
  for (let index = 0; index < count; index++) {
    const key = await reader.string()
    entries.set(key, await readValue(reader, await reader.uint32(), 0))
  }
  return entries
}

const NUMBER_READERS: Readonly<
  Record<number, readonly [bytes: number, read: (bytes: Buffer) => number | boolean]>
> = {
  0: [1, (bytes) => bytes.readUInt8()],
  1: [1, (bytes) => bytes.readInt8()],
  2: [2, (bytes) => bytes.readUInt16LE()],
  3: [2, (bytes) => bytes.readInt16LE()],
  4: [4, (bytes) => bytes.readUInt32LE()],
  5: [4, (bytes) => bytes.readInt32LE()],
  6: [4, (bytes) => bytes.readFloatLE()],
  7: [1, (bytes) => bytes.readUInt8() !== 0],
  10: [8, (bytes) => Number(bytes.readBigUInt64LE())],
  11: [8, (bytes) => Number(bytes.readBigInt64LE())],
  12: [8, (bytes) => bytes.readDoubleLE()],
}
const STRING_TYPE = 8
const ARRAY_TYPE = 9
const NESTING_MAX = 4

async function readValue(reader: Reader, type: number, depth: number): Promise<Value> {
  if (type === STRING_TYPE) return reader.string()
  if (type === ARRAY_TYPE) return readArray(reader, depth + 1)
  const scalar = NUMBER_READERS[type]
  if (scalar === undefined) throw new Error(`unknown value type ${type}`)
  return scalar[1](await reader.bytes(scalar[0]))
}

async function readArray(reader: Reader, depth: number): Promise<Value> {
  if (depth > NESTING_MAX) throw new Error("arrays nested too deep")
  const type = await reader.uint32()
  const length = await reader.count(ARRAY_LENGTH_MAX)
  const scalar = NUMBER_READERS[type]
  if (scalar !== undefined && length > KEPT_ARRAY_LENGTH_MAX) {
    reader.skip(scalar[0] * length)
    return undefined
  }
  if (type === STRING_TYPE && length > KEPT_ARRAY_LENGTH_MAX) {
    await reader.skipStrings(length)
    return undefined
  }
  const kept: Value[] = []
  for (let index = 0; index < length; index++) {
    const value = await readValue(reader, type, depth)
    if (index < KEPT_ARRAY_LENGTH_MAX) kept.push(value)
  }
  return length > KEPT_ARRAY_LENGTH_MAX ? undefined : kept
}

const ALIGNMENT_DEFAULT = 32

/** Elements and bytes of a block, by ggml's number of the type; of other types only the beginning is known. */
const BLOCKS: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  0: [1, 4],
  1: [1, 2],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  8: [32, 34],
  10: [256, 84],
  11: [256, 110],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
  20: [32, 18],
  23: [256, 136],
  30: [1, 2],
  39: [32, 17],
}

/** How many parameters there are, and how far the tensors reach from where they begin. */
async function readTensors(
  reader: Reader,
  count: number,
): Promise<{ readonly parameterCount: number; readonly bytes: number; readonly tensors: TensorShapes }> {
  const tensors = new Map<string, readonly number[]>()
  let parameterCount = 0
  let bytes = 0
  for (let index = 0; index < count; index++) {
    const name = await reader.string()
    const dimensions = await reader.uint32()
    if (dimensions > DIMENSIONS_MAX) throw new Error(`a tensor of ${dimensions} dimensions`)
    const shape: number[] = []
    for (let axis = 0; axis < dimensions; axis++) shape.push(await reader.count(Number.MAX_SAFE_INTEGER))
    tensors.set(name, shape)
    const elements = shape.reduce((product, size) => product * size, 1)
    parameterCount += elements
    const [blockElements, blockBytes] = BLOCKS[await reader.uint32()] ?? [elements, 1]
    const offset = await reader.count(Number.MAX_SAFE_INTEGER)
    bytes = Math.max(bytes, offset + Math.ceil(elements / blockElements) * blockBytes)
  }
  return { parameterCount, bytes, tensors }
}

// general.file_type as llama.cpp numbers it.
const QUANTIZATIONS: Readonly<Record<number, string>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  19: "IQ2_XXS",
  20: "IQ2_XS",
  21: "Q2_K_S",
  22: "IQ3_XS",
  23: "IQ3_XXS",
  24: "IQ1_S",
  25: "IQ4_NL",
  26: "IQ3_S",
  27: "IQ3_M",
  28: "IQ2_S",
  29: "IQ2_M",
  30: "IQ4_XS",
  31: "IQ1_M",
  32: "BF16",
  36: "TQ1_0",
  37: "TQ2_0",
  38: "MXFP4",
}

function summarize(
  entries: ReadonlyMap<string, Value>,
  parameterCount: number,
): Omit<GgufSummary, "fileBytesMin" | "tensors"> {
  const architecture = text(entries, "general.architecture") ?? "unknown"
  const of = (key: string): number | undefined => numeric(entries, `${architecture}.${key}`)
  const contextTokensMax = of("context_length")
  if (contextTokensMax === undefined) throw new Error("no context length")
  const version = text(entries, "general.version")
  const name = text(entries, "general.name") ?? "unnamed"
  const ownTemplate = text(entries, "tokenizer.chat_template")
  return {
    architecture,
    name: version === undefined ? name : `${name} ${version}`,
    contextTokensMax,
    parameterCount,
    quantization: QUANTIZATIONS[numeric(entries, "general.file_type") ?? -1] ?? "unknown",
    chatTemplate: ownTemplate === undefined ? undefined : withoutDefaultSystem(ownTemplate),
  }
}

function text(entries: ReadonlyMap<string, Value>, key: string): string | undefined {
  const value = entries.get(key)
  return typeof value === "string" ? value : undefined
}

/** Some models give one number per layer: the largest one bounds them all. */
function numeric(entries: ReadonlyMap<string, Value>, key: string): number | undefined {
  const value = entries.get(key)
  if (typeof value === "number") return value
  if (!Array.isArray(value)) return undefined
  const numbers = value.filter((element) => typeof element === "number")
  return numbers.length > 0 ? Math.max(...numbers) : undefined
}

/** Reads forward through a file with one window of it in memory. */
class Reader {
  readonly #file: FileHandle
  #window = Buffer.alloc(0)
  #windowStart = 0
  #position = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  get position(): number {
    return this.#position
  }

  async bytes(count: number): Promise<Buffer> {
    if (this.#position + count > this.#windowStart + this.#window.length) await this.#fill(count)
    const start = this.#position - this.#windowStart
    this.#position += count
    return this.#window.subarray(start, start + count)
  }

  async #fill(count: number): Promise<void> {
    const window = Buffer.allocUnsafe(Math.max(WINDOW_BYTES, count))
    const { bytesRead } = await this.#file.read(window, 0, window.length, this.#position)
    if (bytesRead < count) throw new Error("the file ends too early")
    this.#window = window.subarray(0, bytesRead)
    this.#windowStart = this.#position
  }

  skip(count: number): void {
    this.#position += count
    // A window that ends before the new position is replaced by the next read.
    if (this.#position > this.#windowStart + this.#window.length) {
      this.#window = Buffer.alloc(0)
      this.#windowStart = this.#position
    }
  }

  /** A vocabulary has many: only where the window ends is one waited for. */
  async skipStrings(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      if (this.#position + 8 > this.#windowStart + this.#window.length) await this.#fill(8)
      const length = bounded(
        this.#window.readBigUInt64LE(this.#position - this.#windowStart),
        STRING_BYTES_MAX,
      )
      this.skip(8 + length)
    }
  }

  async uint32(): Promise<number> {
    return (await this.bytes(4)).readUInt32LE()
  }

  async count(max: number): Promise<number> {
    return bounded((await this.bytes(8)).readBigUInt64LE(), max)
  }

  async string(): Promise<string> {
    return (await this.bytes(await this.count(STRING_BYTES_MAX))).toString("utf8")
  }
}

function bounded(count: bigint, max: number): number {
  if (count > BigInt(max)) throw new Error(`a count of ${count}, more than ${max}`)
  return Number(count)
}

/** As the templates of SmolLM2 and its kin write it, before the first message. */
const DEFAULT_SYSTEM_TURN =
  /\{%-?\s*if loop\.first and messages\[0\]\['role'\] != 'system'\s*-?%\}\{\{.*?\}\}\{%-?\s*endif\s*-?%\}/s

/** What neither the caller nor the evidence says is not said to the model: SmolLM2 of 135M answers in French after its own system turn. */
export const withoutDefaultSystem = (template: string): string => template.replace(DEFAULT_SYSTEM_TURN, "")
