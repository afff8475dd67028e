/** An encoder's answers depend on their own request alone. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { Encoder, RUN_TOKENS_ON_GPU, RUN_TOKENS_PER_THREAD } from "../src/engine/encoder/encoder.ts"
import { gpu, openGraph } from "../src/engine/encoder/graph-sessions.ts"
import { readEncoderFile } from "../src/engine/encoder/read-model-file.ts"
import { differenceAmidOthers, differenceOf, flipsByOrder, randomFrom } from "./encoder-equality.ts"
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

  test("the network as a GPU gets it, in the runs of one, answers as the processor does, within a thousandth", async () => {
    const file = await readEncoderFile(modelFile)
    const graph = await openGraph(file.description, { modelFile, threads: 2 }, { ...gpu, provider: "cpu" })
    const asOnGpu = new Encoder(file, graph, { runTokensMax: RUN_TOKENS_ON_GPU })
    expect(await differenceOf(engine, asOnGpu, 4)).toBeLessThan(0.001)
    const { runs, tokensRun } = asOnGpu.stats()
    expect(tokensRun / runs).toBeGreaterThan(2 * RUN_TOKENS_PER_THREAD)
    await asOnGpu.close()
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
