import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { defaultModelFile, randomModel } from "../../test/models.ts"
import { readGguf } from "./gguf.ts"

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "umpire-gguf-"))
})
afterAll(() => rm(folder, { recursive: true }))

async function fileOf(bytes: Buffer): Promise<string> {
  const file = path.join(folder, "model.gguf")
  await writeFile(file, bytes)
  return file
}

test("the default model's facts are read without loading it", async () => {
  expect(await readGguf(defaultModelFile)).toMatchObject({
    architecture: "llama",
    contextTokensMax: 8192,
    parameterCount: 134_515_008,
    quantization: "Q4_1",
    chatTemplate: expect.stringContaining("<|im_start|>"),
  })
})

test("a model of another architecture has the same facts", async () => {
  expect(await readGguf(randomModel("tiny-f16"))).toMatchObject({
    name: "random-tiny-f16",
    quantization: "F16",
    contextTokensMax: 32_768,
  })
})

test("a missing file and a file that is no GGUF are told apart", async () => {
  await expect(readGguf(path.join(folder, "absent"))).rejects.toThrow("it does not exist or is not readable")
  for (const bytes of [Buffer.alloc(0), Buffer.from("GGU"), Buffer.from("<!doctype html>")]) {
    await expect(readGguf(await fileOf(bytes))).rejects.toThrow("it is not a GGUF file")
  }
})

test("a file cut anywhere in its header is called damaged", async () => {
  const whole = await readFile(randomModel("micro-long"))
  for (const length of [4, 7, 20, 24, 60, 500, 5000]) {
    await expect(readGguf(await fileOf(whole.subarray(0, length)))).rejects.toThrow("it is damaged")
  }
})

test("counts that no file can have are refused before anything is allocated for them", async () => {
  const whole = await readFile(randomModel("micro-long"))
  for (const [offset, what] of [
    [8, "tensors"],
    [16, "entries"],
    [24, "length of the first key"],
  ] as const) {
    const bytes = Buffer.from(whole)
    bytes.writeBigUInt64LE(2n ** 63n, offset)
    await expect(readGguf(await fileOf(bytes)), what).rejects.toThrow("it is damaged (a count of")
  }
})

test("a version that is not known is refused", async () => {
  const bytes = Buffer.from(await readFile(randomModel("micro-long")))
  bytes.writeUInt32LE(4, 4)
  await expect(readGguf(await fileOf(bytes))).rejects.toThrow("version 4 is not supported")
})
