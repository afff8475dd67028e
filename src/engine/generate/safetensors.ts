/** Reads a safetensors file: a JSON table of names, shapes and places, then the numbers. */
import { readFile } from "node:fs/promises"

export interface SafeTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}

const HEADER_BYTES_MAX = 100 * 1024 * 1024

export async function readSafetensors(file: string): Promise<Map<string, SafeTensor>> {
  const bytes = await readFile(file)
  const headerLength = Number(bytes.readBigUInt64LE(0))
  if (headerLength > Math.min(HEADER_BYTES_MAX, bytes.length - 8))
    throw new Error("Cannot read the weights: the file is damaged")
  const table = JSON.parse(bytes.toString("utf8", 8, 8 + headerLength)) as Record<
    string,
    { dtype?: string; shape?: number[]; data_offsets?: [number, number] }
  >
  const start = 8 + headerLength
  const tensors = new Map<string, SafeTensor>()
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(table)) {
    if (dtype === undefined || shape === undefined || data_offsets === undefined) continue
    const [from, to] = data_offsets
    tensors.set(name, { dtype, shape, bytes: bytes.subarray(start + from, start + to) })
  }
  return tensors
}

/** Half-precision numbers at full width, by a table of all there are. */
export function halfToFloat(bytes: Uint8Array): Float32Array {
  halves ??= Float32Array.from({ length: 65_536 }, (_, bits) => half(bits))
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const values = new Float32Array(bytes.byteLength / 2)
  for (let index = 0; index < values.length; index++)
    values[index] = halves[view.getUint16(index * 2, true)] ?? NaN
  return values
}

let halves: Float32Array | undefined

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024)
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024)
}
