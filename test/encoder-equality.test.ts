/** An encoder's answers depend on their own request alone. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { differenceAmidOthers, flipsByOrder } from "./encoder-equality.ts"
import { decisionModelFile } from "./models.ts"

let engine: EncoderEngine
beforeAll(async () => {
  engine = await startEncoderEngine({ modelFile: decisionModelFile })
})
afterAll(async () => await engine.close())

test("a request amid others is answered as alone, within half a percent", async () => {
  expect(await differenceAmidOthers(engine, 24)).toBeLessThan(0.005)
})

test("the order of options does not change an answer", async () => {
  expect(await flipsByOrder(engine, 30)).toBe(0)
})
