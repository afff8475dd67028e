import { dirname } from "node:path"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { expect, test } from "vitest"
import { baseDecisionModelFile, decisionModelFile } from "../../../test/models.ts"
import type { EncoderDescription } from "./model-file.ts"
import { partsOf } from "./graph-sessions.ts"
import type { Cut } from "./model-parts.ts"
import { readEncoderFile } from "./read-model-file.ts"

interface Run {
  readonly tokens: number
  /** Tokens that were read before. */
  readonly read: number
  readonly rows?: number
  /** Of the token at a place of its row. */
  readonly group?: (at: number) => number
}

/** Evidence, a stem, two branches of it and padding. */
const question = (at: number): number => [0, 0, 0, 0, 1, 2, 3, -1][Math.floor(at / 5)] ?? -1

function inputsOf(
  description: EncoderDescription,
  { tokens, read, rows = 1, group = () => 0 }: Run,
): Tensors {
  const { layers, heads, headSize, evidencePositions } = description
  const ints = (count: number, value: (at: number) => number): Tensor => {
    const values = Int32Array.from({ length: rows * count }, (_, at) => value(at % count))
    return new Tensor("int32", values, [rows, count])
  }
  const past = (size: number): Tensor => {
    // The first row of each head is zero.
    const isZero = (at: number): boolean => Math.floor(at / size) % (read + 1) === 0
    const values = Float32Array.from({ length: rows * heads * (read + 1) * size }, (_, at) =>
      isZero(at) ? 0 : Math.sin(at),
    )
    return new Tensor("float32", values, [rows, heads, read + 1, size])
  }
  const pasts = Array.from({ length: layers }, (_, layer) => [
    [`past_keys.${layer}`, past(headSize + 2)] as const,
    [`past_values.${layer}`, past(headSize)] as const,
  ]).flat()
  return {
    ids: ints(tokens, (at) => 1000 + at * 7),
    positions: ints(tokens, (at) => at),
    group: ints(tokens, group),
    parent: ints(tokens, (at) => (group(at) > 1 ? 1 : 0)),
    ends: new Tensor("int32", Int32Array.of(0, tokens - 1), [1, 2]),
    past_positions: ints(read + 1, (at) => at % evidencePositions),
    ...Object.fromEntries(pasts),
  }
}
/** Its outputs are all float32. */
const bits = (tensor: Tensor | undefined): Buffer => {
  if (!(tensor?.data instanceof Float32Array)) throw new Error("The output has other numbers")
  const { buffer, byteOffset, byteLength } = tensor.data
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** As the file has them: row after row, head after head, each beginning with zeros. */
function byHeads(tensor: Tensor | undefined, rows: number, heads: number): Buffer {
  if (!(tensor?.data instanceof Float32Array)) throw new Error("The output has other numbers")
  const { data, dims } = tensor
  const [all = 0, width = 0] = dims
  const [tokens, size] = [all / rows, width / heads]
  const ordered = new Float32Array(rows * heads * (tokens + 1) * size)
  for (let row = 0; row < rows; row++)
    for (let head = 0; head < heads; head++)
      for (let token = 0; token < tokens; token++) {
        const from = (row * tokens + token) * width + head * size
        const to = (row * heads + head) * (tokens + 1) + token + 1
        ordered.set(data.subarray(from, from + size), to * size)
      }
  return Buffer.from(ordered.buffer)
}

type Tensors = Record<string, Tensor>

const integers = (parts: number): Cut => ({ parts, products: "integers" })

const given = (inputs: Tensors, names: readonly string[]): Tensors =>
  Object.fromEntries(Object.entries(inputs).filter(([name]) => names.includes(name)))

test.each([
  { modelFile: decisionModelFile, count: 1 },
  { modelFile: decisionModelFile, count: 5 },
  { modelFile: baseDecisionModelFile, count: 12 },
])("parts after each other have the bits of the whole network: $modelFile, $count", async (network) => {
  const { description } = await readEncoderFile(network.modelFile)
  const parts = partsOf(network.modelFile, description.layers, integers(network.count))
  expect(parts).toHaveLength(network.count)
  const whole = await InferenceSession.create(network.modelFile)
  expect(whole.outputNames.length).toBeGreaterThan(2 * description.layers)
  const options: InferenceSession.SessionOptions = {
    graphOptimizationLevel: "disabled",
    extra: { session: { model_external_initializers_file_folder_path: dirname(network.modelFile) } },
  }
  const sessions: InferenceSession[] = []
  for (const { bytes } of parts) sessions.push(await InferenceSession.create(bytes, options))
  for (const run of [
    { tokens: 40, read: 0, rows: 2, group: question },
    { tokens: 300, read: 0 },
    { tokens: 40, read: 700, group: question },
  ]) {
    const known = inputsOf(description, run)
    const expected = await whole.run(given(known, whole.inputNames))
    for (const [part, { inputs }] of parts.entries())
      Object.assign(known, await sessions[part]?.run(given(known, inputs)))
    for (const name of whole.outputNames) {
      const [rows = 0, , , size] = expected[name]?.dims ?? []
      const found = size === undefined ? bits(known[name]) : byHeads(known[name], rows, description.heads)
      expect(found.equals(bits(expected[name])), name).toBe(true)
    }
  }
  for (const session of [...sessions, whole]) await session.release()
})

test("what all layers add to their scores by distance is made in the first part alone", async () => {
  const { layers } = (await readEncoderFile(baseDecisionModelFile)).description
  const [first, ...others] = partsOf(baseDecisionModelFile, layers, integers(6))
  expect(first?.passedOn.length).toBeGreaterThan(1)
  for (const { inputs } of others) expect(inputs).not.toContain("past_positions")
})

test("parts hold no weights of their own", async () => {
  const { layers } = (await readEncoderFile(decisionModelFile)).description
  for (const { bytes } of partsOf(decisionModelFile, layers, integers(3)))
    expect(bytes.length).toBeLessThan(1_000_000)
})
