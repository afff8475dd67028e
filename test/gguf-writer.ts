/** Writes a GGUF file: metadata, then tensors, in the layout that llama.cpp reads. */
import { open } from "node:fs/promises"

export type GgufValue =
  | { readonly type: "uint32" | "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: readonly string[] }
  | { readonly type: "int32s"; readonly value: readonly number[] }

export interface GgufTensor {
  readonly name: string
  /** Innermost first, as GGUF has it. */
  readonly shape: readonly number[]
  readonly type: "F32" | "F16"
  readonly bytes: Uint8Array
}

const VERSION = 3
const ALIGNMENT = 32
const TENSOR_TYPES = { F32: 0, F16: 1 } as const
const VALUE_TYPES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const

export async function writeGguf(
  file: string,
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Promise<void> {
  const head = new ByteList()
  const entries = Object.entries(metadata)
  head.text("GGUF").uint32(VERSION).uint64(tensors.length).uint64(entries.length)
  for (const [key, value] of entries) writeEntry(head, key, value)
  let offset = 0
  for (const { name, shape, type, bytes } of tensors) {
    head.string(name).uint32(shape.length)
    for (const size of shape) head.uint64(size)
    head.uint32(TENSOR_TYPES[type]).uint64(offset)
    offset += aligned(bytes.byteLength)
  }
  const handle = await open(file, "w", 0o600)
  try {
    const start = head.bytes()
    await handle.write(padded(start))
    for (const { bytes } of tensors) await handle.write(padded(bytes))
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function writeEntry(into: ByteList, key: string, entry: GgufValue): void {
  into.string(key)
  switch (entry.type) {
    case "uint32":
      into.uint32(VALUE_TYPES.uint32).uint32(entry.value)
      return
    case "float32":
      into.uint32(VALUE_TYPES.float32).float32(entry.value)
      return
    case "bool":
      into.uint32(VALUE_TYPES.bool).byte(entry.value ? 1 : 0)
      return
    case "string":
      into.uint32(VALUE_TYPES.string).string(entry.value)
      return
    case "strings":
      into.uint32(VALUE_TYPES.array).uint32(VALUE_TYPES.string).uint64(entry.value.length)
      for (const one of entry.value) into.string(one)
      return
    case "int32s":
      into.uint32(VALUE_TYPES.array).uint32(VALUE_TYPES.int32).uint64(entry.value.length)
      for (const one of entry.value) into.uint32(one)
  }
}

const aligned = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT

function padded(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength % ALIGNMENT === 0) return bytes
  const whole = new Uint8Array(aligned(bytes.byteLength))
  whole.set(bytes)
  return whole
}

class ByteList {
  readonly #parts: Buffer[] = []

  bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  text(value: string): this {
    return this.#add(Buffer.from(value))
  }

  string(value: string): this {
    const bytes = Buffer.from(value)
    return this.uint64(bytes.length).#add(bytes)
  }

  byte(value: number): this {
    return this.#add(Buffer.of(value))
  }

  uint32(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value >>> 0)
    return this.#add(bytes)
  }

  uint64(value: number): this {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(BigInt(value))
    return this.#add(bytes)
  }

  float32(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeFloatLE(value)
    return this.#add(bytes)
  }

  #add(bytes: Buffer): this {
    this.#parts.push(bytes)
    return this
  }
}
