/** Reads what an encoder's ONNX file says about itself, without loading its weights. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, open, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { z } from "zod"
import type { ModelFacts } from "../engine.ts"

/** Entries of the file's metadata_props. */
const DESCRIPTION_KEY = "umpire.encoder"
const VOCABULARY_KEY = "umpire.vocabulary"
/** Metadata is small; anything larger is not ours. */
const METADATA_BYTES_MAX = 8 * 1024 * 1024
const FIELDS_MAX = 1000
/** Field numbers and wire types of ONNX's protobuf schema. */
const GRAPH_FIELD = 7
const METADATA_FIELD = 14
const [VARINT, FIXED64, FIXED32] = [0, 1, 5]
export const BYTES = 2
/** Ten for a negative number. */
const VARINT_BYTES_MAX = 10
/** A tag and a length. */
export const HEAD_BYTES = 2 * VARINT_BYTES_MAX

/** What moves margins of one kind of question, fitted on labelled texts that the model was not trained on. */
const Calibration = z.strictObject({
  temperature: z.number().positive(),
  bias: z.number(),
})

/** Weights that lie in a file of their own beside the ONNX file, so that neither is too large for a git host. */
const WeightsFile = z.strictObject({
  name: z.string().regex(/^[\w-][\w.-]*$/),
  bytes: z.number().int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

const Description = z.object({
  version: z.literal([3, 4]),
  name: z.string(),
  quantization: z.string(),
  parameterCount: z.number().int().positive(),
  contextTokensMax: z.number().int().positive(),
  layers: z.number().int().positive(),
  heads: z.number().int().positive(),
  headSize: z.number().int().positive(),
  /** Positions that evidence and branches count round in; those of branches come after those of evidence. */
  evidencePositions: z.number().int().positive(),
  branchPositions: z.number().int().positive(),
  /** Tokens of evidence that see each other; longer evidence is read in blocks of at most this. */
  blockTokensMax: z.number().int().min(64),
  /** Taken from a cosine of evidence and option before it is weighed. */
  similarityCentre: z.number(),
  /** How much the recalled cosine counts. */
  recalledWeight: z.number().min(0),
  calibration: z.strictObject({ predicate: Calibration, choice: Calibration, score: Calibration }),
  weightsFile: WeightsFile.optional(),
})
export type EncoderDescription = z.infer<typeof Description>

export interface EncoderFile {
  readonly description: EncoderDescription
  /** In the order of the ids. */
  readonly vocabulary: readonly string[]
}

/** Throws Error with a clear sentence for a file that is truncated, not ONNX, or not an encoder of ours. */
export async function readEncoderFile(path: string): Promise<EncoderFile> {
  const file = await open(path).catch((cause: unknown) => {
    throw new Error(`${path} cannot be opened`, { cause })
  })
  try {
    const properties = await readProperties(path, file)
    const text = properties.get(DESCRIPTION_KEY)
    const vocabulary = properties.get(VOCABULARY_KEY)
    if (text === undefined || vocabulary === undefined)
      throw new Error(`${path} is an ONNX file but not one of an Umpire encoder`)
    const parsed = Description.safeParse(parseJson(text))
    if (!parsed.success) throw new Error(`${path} describes itself in a form that this version does not know`)
    if (parsed.data.weightsFile) await checkLength(path, parsed.data.weightsFile)
    return { description: parsed.data, vocabulary: vocabulary.split("\n") }
  } finally {
    await file.close()
  }
}

/** Throws Error when the weights beside the file are not those that it was made with. */
export async function checkWeights(path: string, { description }: EncoderFile): Promise<void> {
  const { weightsFile } = description
  if (weightsFile) await checkHash(weightsPath(path, weightsFile), weightsFile.sha256, path)
}

/** Throws Error when the weights are not those that the ONNX file at `path` was made with. */
export async function checkHash(weights: string, sha256: string, path: string): Promise<void> {
  const hash = createHash("sha256")
  await pipeline(createReadStream(weights), hash)
  if (hash.digest("hex") !== sha256) throw new Error(`${weights} is not the file that ${path} was made with`)
}

type WeightsFile = z.infer<typeof WeightsFile>

const weightsPath = (path: string, { name }: WeightsFile): string => join(dirname(path), name)

async function checkLength(path: string, weights: WeightsFile): Promise<void> {
  const beside = weightsPath(path, weights)
  const found = await stat(beside).catch((cause: unknown) => {
    throw new Error(`${beside}, which ${path} needs, cannot be opened`, { cause })
  })
  if (found.size !== weights.bytes)
    throw new Error(`${beside} has ${found.size} bytes and needs ${weights.bytes}`)
}

export function factsOf({ description }: EncoderFile): ModelFacts {
  const { name, contextTokensMax, parameterCount, quantization } = description
  return { name, contextTokensMax, parameterCount, quantization }
}

/** Every training run writes a description of its own: its temperatures alone differ in their last digits. */
export function versionOf({ description }: EncoderFile): string {
  const digest = createHash("sha256").update(JSON.stringify(description)).digest("hex").slice(0, 16)
  return `${description.name}/${description.quantization}/${digest}`
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Walks the top-level fields; the graph with all weights is one of them and is stepped over. */
async function readProperties(path: string, file: FileHandle): Promise<Map<string, string>> {
  const { size } = await file.stat()
  const properties = new Map<string, string>()
  let sawGraph = false
  let at = 0
  for (let count = 0; at < size; count++) {
    if (count >= FIELDS_MAX) throw notOnnx(path)
    const field = await readHead(path, file, at)
    if (field.end > size) throw new Error(`${path} is truncated: it has ${size} bytes and needs ${field.end}`)
    if (field.number === GRAPH_FIELD) sawGraph = true
    if (field.number === METADATA_FIELD && field.wireType === BYTES) {
      const [key, value] = await readEntry(path, file, field)
      properties.set(key, value)
    }
    at = field.end
  }
  if (!sawGraph) throw notOnnx(path)
  return properties
}

export interface Field {
  readonly number: number
  readonly wireType: number
  readonly start: number
  readonly end: number
}

async function readHead(path: string, file: FileHandle, at: number): Promise<Field> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, at)
  const field = parseHead(buffer.subarray(0, bytesRead))
  if (field === null) throw notOnnx(path)
  return { ...field, start: at + field.start, end: at + field.end }
}

async function readEntry(path: string, file: FileHandle, { start, end }: Field): Promise<[string, string]> {
  if (end - start > METADATA_BYTES_MAX) throw notOnnx(path)
  const bytes = Buffer.alloc(end - start)
  await file.read(bytes, 0, bytes.length, start)
  const texts = ["", ""]
  for (let at = 0; at < bytes.length;) {
    const field = parseHead(bytes.subarray(at))
    if (field === null || at + field.end > bytes.length) throw notOnnx(path)
    if (field.number === 1 || field.number === 2)
      texts[field.number - 1] = bytes.toString("utf8", at + field.start, at + field.end)
    at += field.end
  }
  return [texts[0] ?? "", texts[1] ?? ""]
}

/** Where a field's content starts and ends; null for bytes that are no protobuf. */
export function parseHead(bytes: Buffer): Field | null {
  const tag = parseVarint(bytes, 0)
  if (tag === null) return null
  const [number, wireType] = [Math.floor(tag.value / 8), tag.value % 8]
  if (number === 0) return null
  const field = (start: number, end: number): Field => ({ number, wireType, start, end })
  switch (wireType) {
    case FIXED64:
      return field(tag.end, tag.end + 8)
    case FIXED32:
      return field(tag.end, tag.end + 4)
    case VARINT: {
      const value = parseVarint(bytes, tag.end)
      return value && field(tag.end, value.end)
    }
    case BYTES: {
      const length = parseVarint(bytes, tag.end)
      return length && field(length.end, length.end + length.value)
    }
    default:
      return null
  }
}

function parseVarint(bytes: Buffer, start: number): { value: number; end: number } | null {
  let value = 0
  for (let at = start, scale = 1; at < Math.min(bytes.length, start + VARINT_BYTES_MAX); at++, scale *= 128) {
    const byte = bytes[at] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return { value, end: at + 1 }
  }
  return null
}

const notOnnx = (path: string): Error => new Error(`${path} is not an ONNX file`)
