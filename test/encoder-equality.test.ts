/** An encoder's answers depend on their own request alone. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { openGraph } from "../src/engine/encoder/graph.ts"
import { readEncoderFile } from "../src/engine/encoder/model-file.ts"
import { differenceAmidOthers, flipsByOrder, randomFrom } from "./encoder-equality.ts"
import { baseDecisionModelFile, decisionModelFile } from "./models.ts"

describe.each([
  ["umpire-decide", baseDecisionModelFile],
  ["umpire-decide-small", decisionModelFile],
])("%s", (_, modelFile) => {
  let engine: EncoderEngine
  beforeAll(async () => {
    engine = await startEncoderEngine({ modelFile })
  })
  afterAll(async () => await engine.close())

  test("a request amid others is answered as alone, within half a percent", async () => {
    expect(await differenceAmidOthers(engine, 8)).toBeLessThan(0.005)
  })

  test("a row's margins do not depend on the length of the rows that share its run", async () => {
    const { description } = await readEncoderFile(modelFile)
    const graph = await openGraph(description, { modelFile, threads: 1 })
    const random = randomFrom(1)
    const tokens = (count: number): Int32Array =>
      Int32Array.from({ length: count }, () => 1000 + Math.floor(random() * 20_000))
    const row = (evidence: number) => ({
      evidence: tokens(evidence),
      questions: [{ stem: tokens(0), branches: [tokens(8)] }],
      pooling: "none" as const,
    })
    for (let length = 10; length < 20; length++) {
      const own = row(length)
      const [alone] = await graph.scoreRows([own])
      for (const other of [50, 51, 53]) {
        const [amid] = await graph.scoreRows([own, row(other)])
        expect(amid?.margins[0]).toBeCloseTo(alone?.margins[0] ?? Number.NaN, 3)
      }
    }
    await graph.close()
  })

  test("the order of options does not change an answer", async () => {
    expect(await flipsByOrder(engine, 15)).toBe(0)
  })
})
