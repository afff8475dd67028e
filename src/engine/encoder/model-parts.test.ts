import { dirname } from "node:path"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { expect, test } from "vitest"
import { decisionModelFile } from "../../../test/models.ts"
import { readEncoderFile } from "./model-file.ts"
import { cutModel } from "./model-parts.ts"

const modelFile = decisionModelFile
const { description } = await readEncoderFile(modelFile)

/** The inputs of one row of so many tokens of evidence about which nothing was read before. */
function inputsOf(count: number): Record<string, Tensor> {
  const { layers, heads, headSize } = description
  const row = (value: (at: number) => number): Tensor =>
    new Tensor(
      "int32",
      Int32Array.from({ length: count }, (_, at) => value(at)),
      [1, count],
    )
  const past = (size: number): Tensor =>
    new Tensor("float32", new Float32Array(heads * size), [1, heads, 1, size])
  const pasts = Array.from({ length: layers }, (_, layer) => [
    [`past_keys.${layer}`, past(headSize + 2)] as const,
    [`past_values.${layer}`, past(headSize)] as const,
  ]).flat()
  return {
    ids: row((at) => 1000 + at * 7),
    positions: row((at) => at),
    group: row(() => 0),
    parent: row(() => 0),
    ends: new Tensor("int32", Int32Array.of(0, count - 1), [1, 2]),
    ...Object.fromEntries(pasts),
  }
}

test.each([1, 3, 5])("%i parts after each other have the bits of the whole network", async (count) => {
  const parts = cutModel(modelFile, description.layers, count)
  expect(parts).toHaveLength(count)
  const inputs = inputsOf(40)
  const whole = await InferenceSession.create(modelFile)
  const expected = await whole.run(inputs)
  const folder = dirname(modelFile)
  const known = { ...inputs }
  for (const part of parts) {
    const session = await InferenceSession.create(part.bytes, {
      extra: { session: { model_external_initializers_file_folder_path: folder } },
    })
    const given = part.inputs.map((name) => [name, known[name]])
    Object.assign(known, await session.run(Object.fromEntries(given)))
    await session.release()
  }
  expect(whole.outputNames.length).toBeGreaterThan(2 * description.layers)
  for (const name of whole.outputNames) expect(known[name]?.data).toEqual(expected[name]?.data)
  await whole.release()
})

test("parts hold no weights of their own", () => {
  for (const { bytes } of cutModel(modelFile, description.layers, 3))
    expect(bytes.length).toBeLessThan(1_000_000)
})
