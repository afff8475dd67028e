/** An encoder's answers depend on their own request alone, and its memory stays level: many requests. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { differenceAmidOthers, flipsByOrder, randomFrom, randomWork, score } from "./encoder-equality.ts"
import { decisionModelFile } from "./models.ts"

let engine: EncoderEngine
beforeAll(async () => {
  engine = await startEncoderEngine({ modelFile: decisionModelFile, cacheBytes: 64 * 1024 * 1024 })
})
afterAll(async () => await engine.close())

test("200 requests amid others are answered as alone, within half a percent", async () => {
  const difference = await differenceAmidOthers(engine, 200)
  console.log(`largest difference of a probability ${difference}`)
  expect(difference).toBeLessThan(0.005)
})

test("1,000 orders of options change no answer", async () => {
  expect(await flipsByOrder(engine, 1000)).toBe(0)
})

test("memory stays level over 1,000 mixed requests", async () => {
  const random = randomFrom(3)
  const askMany = async (): Promise<void> => {
    for (let round = 0; round < 50; round++)
      await Promise.all(
        Array.from({ length: 10 }, async (_, at) => await score(engine, randomWork(random, `o${at}`))),
      )
  }
  await askMany()
  const before = residentMib(engine.pid)
  await askMany()
  const after = residentMib(engine.pid)
  console.log(`memory after 500 requests ${before} MiB, after 1,000 ${after} MiB`)
  expect(after).toBeLessThan(before * 1.1)
})

function residentMib(pid: number | undefined): number {
  const [, kib = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Math.round(Number(kib) / 1024)
}
