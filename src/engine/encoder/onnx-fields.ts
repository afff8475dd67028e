/** Fields of ONNX's protobuf messages, as they are read and written; nothing here is of Node. */

/** Wire types of protobuf. */
const [VARINT, FIXED64, FIXED32] = [0, 1, 5]
export const BYTES = 2
/** Ten for a negative number. */
const VARINT_BYTES_MAX = 10
/** A tag and a length. */
export const HEAD_BYTES = 2 * VARINT_BYTES_MAX

export type Bytes = Uint8Array<ArrayBuffer>

export interface Field {
  readonly number: number
  readonly wireType: number
  readonly start: number
  readonly end: number
}

/** Where the content of the field at `at` starts and ends; null for bytes that are no protobuf. */
export function parseHead(bytes: Uint8Array, at = 0): Field | null {
  const tag = parseVarint(bytes, at)
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

function parseVarint(bytes: Uint8Array, start: number): { value: number; end: number } | null {
  let value = 0
  for (let at = start, scale = 1; at < Math.min(bytes.length, start + VARINT_BYTES_MAX); at++, scale *= 128) {
    const byte = bytes[at] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return { value, end: at + 1 }
  }
  return null
}

export interface FieldBytes {
  readonly number: number
  readonly content: Bytes
  /** With its head. */
  readonly bytes: Bytes
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function* fieldsOf(message: Bytes): Generator<FieldBytes> {
  for (let at = 0; at < message.length;) {
    const field = parseHead(message, at)
    if (field === null || field.end > message.length) throw notOnnx()
    const { number, start, end } = field
    yield { number, content: message.subarray(start, end), bytes: message.subarray(at, end) }
    at = end
  }
}

export const textOf = ({ content }: FieldBytes): string => decoder.decode(content)

export const textsOf = (message: Bytes, number: number): string[] =>
  Array.from(fieldsOf(message))
    .filter((field) => field.number === number)
    .map(textOf)

/** A field of parts after each other, which are not copied. */
export function lengthFirst(number: number, parts: readonly Bytes[]): Bytes[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const tag = number * 8 + BYTES
  const isShort = tag < 128 && length < 128
  return [
    isShort ? Uint8Array.of(tag, length) : Uint8Array.from([...varint(tag), ...varint(length)]),
    ...parts,
  ]
}

export const textField = (number: number, text: string): Bytes[] =>
  lengthFirst(number, [encoder.encode(text)])

export const intField = (number: number, value: number): Bytes =>
  Uint8Array.from([...varint(number * 8), ...varint(value)])

export function joined(parts: readonly Bytes[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

function varint(value: number): number[] {
  const digits: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...digits, rest]
    digits.push((rest % 128) + 128)
  }
}

export const notOnnx = (): Error => new Error("Cannot load the model: it is not an ONNX file")
