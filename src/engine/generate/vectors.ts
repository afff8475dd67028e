/** Vectors of length one. */

export function normalised(values: readonly number[]): Float32Array {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  return Float32Array.from(values, (value) => (length === 0 ? 0 : value / length))
}
