/** Vectors of texts, which only have a direction: cosines, and a cache of those of options. */
import type { Tokens } from "./graph.ts"

/** Vectors that are kept, of all organizations: about 2 KB each. */
const VECTORS_MAX = 16_384

/** LRU. Organizations never see each other's: how long an answer takes would tell what others have sent. */
export class OptionVectors {
  readonly #vectors = new Map<string, Float32Array>()
  readonly #countMax: number

  constructor(countMax = VECTORS_MAX) {
    this.#countMax = countMax
  }

  find(organizationId: string, tokens: Tokens): Float32Array | undefined {
    const key = keyOf(organizationId, tokens)
    const known = this.#vectors.get(key)
    if (known === undefined) return undefined
    this.#vectors.delete(key)
    this.#vectors.set(key, known)
    return known
  }

  keep(organizationId: string, tokens: Tokens, vector: Float32Array): void {
    this.#vectors.set(keyOf(organizationId, tokens), vector)
    const [oldest] = this.#vectors.keys()
    if (this.#vectors.size > this.#countMax && oldest !== undefined) this.#vectors.delete(oldest)
  }
}

export const keyOf = (organizationId: string, tokens: Tokens): string => `${organizationId} ${tokens.join()}`

export function cosine(a: Float32Array, b: Float32Array): number {
  const lengths = Math.sqrt(product(a, a) * product(b, b))
  return lengths === 0 ? 0 : product(a, b) / lengths
}

export function normalized(vector: Float32Array): Float32Array {
  const length = Math.sqrt(product(vector, vector))
  return length === 0 ? vector : vector.map((value) => value / length)
}

/** Vectors of texts have two halves: of the last layer, which is trained to be compared, and of the middle one. */
export const lastLayer = (vector: Float32Array): Float32Array => vector.subarray(0, vector.length / 2)

/** Both halves get the same length, and the whole the length one. */
export function unitHalves(vector: Float32Array): Float32Array {
  const half = vector.length / 2
  const halves = [normalized(vector.subarray(0, half)), normalized(vector.subarray(half))]
  return Float32Array.from(vector, (_, at) => (halves[at < half ? 0 : 1]?.[at % half] ?? 0) * Math.SQRT1_2)
}

/** An empty vector stands for zero. */
export const added = (a: Float32Array, b: Float32Array): Float32Array =>
  a.length === 0 ? b : a.map((value, at) => value + (b[at] ?? 0))

function product(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}
