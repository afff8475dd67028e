import { createHash } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { onnxField, onnxProperty } from "../../../test/onnx-metadata.ts"
import { factsOf, readEncoder, readEncoderAbout } from "./model-file.ts"
import { checkWeights, readEncoderFile } from "./read-model-file.ts"

const description = {
  version: 3,
  name: "small",
  quantization: "INT8",
  parameterCount: 9,
  contextTokensMax: 2000,
  layers: 1,
  heads: 2,
  headSize: 4,
  evidencePositions: 8,
  branchPositions: 4,
  blockTokensMax: 64,
  similarityCentre: 0.8,
  recalledWeight: 80,
  calibration: Object.fromEntries(
    ["predicate", "choice", "score"].map((kind) => [kind, { temperature: 1, bias: 0 }]),
  ),
}

const version = Buffer.of(8, 9)
const graph = onnxField(7, Buffer.alloc(5000, 1))
const whole = (about: unknown = description): Buffer =>
  Buffer.concat([
    version,
    graph,
    onnxProperty("umpire.encoder", JSON.stringify(about)),
    onnxProperty("umpire.vocabulary", "[UNK]\n[CLS]\n[SEP]\na"),
  ])

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "umpire-onnx-"))
})
afterAll(() => rm(folder, { recursive: true }))

async function read(bytes: Buffer) {
  const path = join(folder, "model.onnx")
  await writeFile(path, bytes)
  return await readEncoderFile(path)
}

test("a file tells what it is and its vocabulary without being loaded", async () => {
  const file = await read(whole())
  expect(factsOf(file)).toEqual({
    name: "small",
    contextTokensMax: 2000,
    parameterCount: 9,
    quantization: "INT8",
  })
  expect(file.vocabulary).toEqual(["[UNK]", "[CLS]", "[SEP]", "a"])
})

test("what a file says about itself is read without its tokens, and is the same", async () => {
  const bytes = whole()
  let bytesRead = 0
  const source = {
    name: "model.onnx",
    size: bytes.length,
    read: (start: number, length: number) => {
      bytesRead += length
      return bytes.subarray(start, start + length)
    },
  }
  const { description: described, version: digest } = await readEncoder(source)
  const withTokens = bytesRead
  bytesRead = 0
  expect(await readEncoderAbout(source)).toEqual({ description: described, version: digest })
  expect(withTokens - bytesRead).toBe("[UNK]\n[CLS]\n[SEP]\na".length)
})

test.each([
  ["cut in its weights", whole().subarray(0, 3000), "is truncated: it has 3000 bytes and needs 5005"],
  ["cut before its description", Buffer.concat([version, graph]), "not one of an Umpire encoder"],
  [
    "of another model",
    Buffer.concat([version, graph, onnxProperty("a", "b")]),
    "not one of an Umpire encoder",
  ],
  [
    "of another tokenizer",
    whole({ ...description, tokenizer: "bytes" }),
    "in a form that this version does not know",
  ],
  ["of a later version", whole({ ...description, version: 6 }), "in a form that this version does not know"],
  ["of another kind", Buffer.from("PK\u0003\u0004 not a model"), "is not an ONNX file"],
  ["without content", Buffer.alloc(0), "is not an ONNX file"],
])("a file %s is refused", async (_, bytes, sentence) => {
  await expect(read(bytes)).rejects.toThrow(sentence)
})

test("a file that is missing is refused", async () => {
  await expect(readEncoderFile(join(folder, "none.onnx"))).rejects.toThrow("cannot be opened")
})

test("weights in a file of their own must be there, whole, and the ones that the file was made with", async () => {
  const path = join(folder, "model.onnx")
  const beside = join(folder, "model.weights")
  const weights = Buffer.alloc(100, 7)
  const sha256 = createHash("sha256").update(weights).digest("hex")
  const about = {
    ...description,
    version: 4,
    weightsFile: { name: "model.weights", bytes: weights.length, sha256 },
  }
  await expect(read(whole(about))).rejects.toThrow(/model\.weights, which .* needs, cannot be opened/u)
  await writeFile(beside, weights.subarray(1))
  await expect(read(whole(about))).rejects.toThrow("has 99 bytes and needs 100")
  await writeFile(beside, Buffer.alloc(100, 8))
  await expect(checkWeights(path, await read(whole(about)))).rejects.toThrow("is not the file that")
  await writeFile(beside, weights)
  await checkWeights(path, await read(whole(about)))
})

test("weights in another folder are refused", async () => {
  const weightsFile = { name: "../model.weights", bytes: 100, sha256: "0".repeat(64) }
  const about = { ...description, version: 4, weightsFile }
  await expect(read(whole(about))).rejects.toThrow("in a form that this version does not know")
})
