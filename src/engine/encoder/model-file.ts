/** Reads what an encoder's ONNX file says about itself, without loading its weights. */
import { z } from "zod"
import { sha256 } from "../../base/hash.ts"
import type { ModelFacts } from "../engine.ts"
import { BYTES, type Field, HEAD_BYTES, parseHead } from "./onnx-fields.ts"

/** Entries of the file's metadata_props. */
const DESCRIPTION_KEY = "umpire.encoder"
const VOCABULARY_KEY = "umpire.vocabulary"
/** Of a Unigram vocabulary: 32-bit floats in base64, little-endian, in the order of the ids. */
const SCORES_KEY = "umpire.scores"
/** Metadata is small; anything larger is not ours. */
const METADATA_BYTES_MAX = 8 * 1024 * 1024
const FIELDS_MAX = 1000
/** Field numbers of ONNX's protobuf schema. */
const GRAPH_FIELD = 7
const METADATA_FIELD = 14
const VERSION_DIGITS = 16
const FLOAT_BYTES = 4

const encoder = new TextEncoder()
/** What is not UTF-8 is replaced, and a byte order mark belongs to the text. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

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
  version: z.literal([3, 4, 5]),
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
  /** Uncased WordPiece where it is not said. */
  tokenizer: z.literal("unigram").optional(),
})
export type EncoderDescription = z.infer<typeof Description>

export interface EncoderFile {
  readonly description: EncoderDescription
  /** In the order of the ids. */
  readonly vocabulary: readonly string[]
  /** Of a Unigram vocabulary: the logarithm of each piece's probability. */
  readonly scores: Float32Array | undefined
  /** Every training run writes a description of its own: its temperatures alone differ in their last digits. */
  readonly version: string
}

/** An ONNX file, wherever it lies. */
interface ModelSource {
  /** For sentences about it. */
  readonly name: string
  readonly size: number
  /** May give fewer at the end. */
  read(start: number, length: number): Uint8Array | Promise<Uint8Array>
}

/** Throws Error with a clear sentence for a file that is truncated, not ONNX, or not an encoder of ours. */
export async function readEncoder(source: ModelSource): Promise<EncoderFile> {
  const { name } = source
  const properties = await readProperties(source)
  const text = properties.get(DESCRIPTION_KEY)
  const vocabulary = properties.get(VOCABULARY_KEY)
  if (text === undefined || vocabulary === undefined)
    throw new Error(`${name} is an ONNX file but not one of an Umpire encoder`)
  const { success, data: description } = Description.safeParse(parseJson(text))
  if (!success) throw new Error(`${name} describes itself in a form that this version does not know`)
  const digest = (await sha256(encoder.encode(JSON.stringify(description)))).slice(0, VERSION_DIGITS)
  const version = `${description.name}/${description.quantization}/${digest}`
  const scores = description.tokenizer === "unigram" ? floatsFrom(properties.get(SCORES_KEY)) : undefined
  return { description, vocabulary: vocabulary.split("\n"), scores, version }
}

export function factsOf({ description }: EncoderFile): ModelFacts {
  const { name, contextTokensMax, parameterCount, quantization } = description
  return { name, contextTokensMax, parameterCount, quantization }
}

/** None where the text is no base64. */
function floatsFrom(base64 = ""): Float32Array {
  const bytes = parseBase64(base64)
  const view = new DataView(bytes.buffer)
  const scores = new Float32Array(Math.floor(bytes.length / FLOAT_BYTES))
  for (const at of scores.keys()) scores[at] = view.getFloat32(at * FLOAT_BYTES, true)
  return scores
}

const parseBase64 = (base64: string): Uint8Array<ArrayBuffer> => {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Walks the top-level fields; the graph with all weights is one of them and is stepped over. */
async function readProperties(source: ModelSource): Promise<Map<string, string>> {
  const { name, size } = source
  const properties = new Map<string, string>()
  let sawGraph = false
  let at = 0
  for (let count = 0; at < size; count++) {
    const head = count < FIELDS_MAX ? parseHead(await source.read(at, HEAD_BYTES)) : null
    if (head === null) throw notOnnx(name)
    const field = { ...head, start: at + head.start, end: at + head.end }
    if (field.end > size) throw new Error(`${name} is truncated: it has ${size} bytes and needs ${field.end}`)
    if (field.number === GRAPH_FIELD) sawGraph = true
    if (field.number === METADATA_FIELD && field.wireType === BYTES) {
      const [key, value] = await readEntry(source, field)
      properties.set(key, value)
    }
    at = field.end
  }
  if (!sawGraph) throw notOnnx(name)
  return properties
}

async function readEntry(source: ModelSource, { start, end }: Field): Promise<[string, string]> {
  if (end - start > METADATA_BYTES_MAX) throw notOnnx(source.name)
  const bytes = await source.read(start, end - start)
  const texts = ["", ""]
  for (let at = 0; at < bytes.length;) {
    const field = parseHead(bytes, at)
    if (field === null || field.end > bytes.length) throw notOnnx(source.name)
    if (field.number === 1 || field.number === 2)
      texts[field.number - 1] = decoder.decode(bytes.subarray(field.start, field.end))
    at = field.end
  }
  return [texts[0] ?? "", texts[1] ?? ""]
}

const notOnnx = (name: string): Error => new Error(`${name} is not an ONNX file`)
