/** Reads what an encoder's ONNX file says about itself, without loading its weights. */
import { z } from "zod"
import { sha256 } from "../../base/hash.ts"
import { parsedJson } from "../../base/json.ts"
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

/** What a file says about itself, without its tokens. */
export interface EncoderAbout {
  readonly description: EncoderDescription
  /** Every training run writes a description of its own: its temperatures alone differ in their last digits. */
  readonly version: string
}

export interface EncoderFile extends EncoderAbout {
  /** In the order of the ids. */
  readonly vocabulary: readonly string[]
  /** Of a Unigram vocabulary: the logarithm of each piece's probability. */
  readonly scores: Float32Array | undefined
}

/** An ONNX file, wherever it lies. */
export interface ModelSource {
  /** For sentences about it. */
  readonly name: string
  readonly size: number
  /** May give fewer at the end. */
  read(start: number, length: number): Uint8Array | Promise<Uint8Array>
}

/** Throws Error with a clear sentence for a file that is truncated, not ONNX, or not an encoder of ours. */
export async function readEncoder(source: ModelSource): Promise<EncoderFile> {
  const properties = await findProperties(source)
  const about = await readAbout(source, properties)
  const vocabulary = await readText(source, properties.get(VOCABULARY_KEY))
  const isUnigram = about.description.tokenizer === "unigram"
  const scores = isUnigram ? floatsFrom(await readText(source, properties.get(SCORES_KEY))) : undefined
  return { ...about, vocabulary: vocabulary.split("\n"), scores }
}

/** The same without the tokens, which take 200 ms where they are of many languages. */
export async function readEncoderAbout(source: ModelSource): Promise<EncoderAbout> {
  return await readAbout(source, await findProperties(source))
}

async function readAbout(source: ModelSource, properties: Properties): Promise<EncoderAbout> {
  const { name } = source
  if (!properties.has(DESCRIPTION_KEY) || !properties.has(VOCABULARY_KEY))
    throw new Error(`${name} is an ONNX file but not one of an Umpire encoder`)
  const text = await readText(source, properties.get(DESCRIPTION_KEY))
  const { success, data: description } = Description.safeParse(parsedJson(text))
  if (!success) throw new Error(`${name} describes itself in a form that this version does not know`)
  const digest = (await sha256(encoder.encode(JSON.stringify(description)))).slice(0, VERSION_DIGITS)
  return { description, version: `${description.name}/${description.quantization}/${digest}` }
}

export function factsOf({ description }: EncoderAbout): ModelFacts {
  const { name, contextTokensMax, parameterCount, quantization } = description
  return { name, contextTokensMax, parameterCount, quantization }
}

/** None where the text is no base64. */
function floatsFrom(base64: string): Float32Array {
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

/** Where the values of the metadata stand, by their keys. */
type Properties = ReadonlyMap<string, Span>
type Span = Pick<Field, "start" | "end">

/** Walks the top-level fields; the graph with all weights is one of them and is stepped over, as values are. */
async function findProperties(source: ModelSource): Promise<Properties> {
  const { name, size } = source
  const properties = new Map<string, Span>()
  let sawGraph = false
  for await (const field of fieldsIn(source, { start: 0, end: size })) {
    if (field.end > size) throw new Error(`${name} is truncated: it has ${size} bytes and needs ${field.end}`)
    if (field.number === GRAPH_FIELD) sawGraph = true
    if (field.number === METADATA_FIELD && field.wireType === BYTES) {
      const { key, value } = await readEntry(source, field)
      properties.set(key, value)
    }
  }
  if (!sawGraph) throw notOnnx(name)
  return properties
}

async function readEntry(source: ModelSource, entry: Span): Promise<{ key: string; value: Span }> {
  if (entry.end - entry.start > METADATA_BYTES_MAX) throw notOnnx(source.name)
  const none = { start: entry.end, end: entry.end }
  let key: Span = none
  let value: Span = none
  for await (const field of fieldsIn(source, entry)) {
    if (field.end > entry.end) throw notOnnx(source.name)
    if (field.number === 1) key = field
    if (field.number === 2) value = field
  }
  return { key: await readText(source, key), value }
}

async function* fieldsIn(source: ModelSource, { start, end }: Span): AsyncGenerator<Field> {
  for (let at = start, count = 0; at < end; count++) {
    const head = count < FIELDS_MAX ? parseHead(await source.read(at, Math.min(HEAD_BYTES, end - at))) : null
    if (head === null) throw notOnnx(source.name)
    const field = { ...head, start: at + head.start, end: at + head.end }
    yield field
    at = field.end
  }
}

/** Empty where there is none. */
async function readText(source: ModelSource, span: Span | undefined): Promise<string> {
  return span ? decoder.decode(await source.read(span.start, span.end - span.start)) : ""
}

const notOnnx = (name: string): Error => new Error(`${name} is not an ONNX file`)
