import { expect, test } from "vitest"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { priceOf, readStages } from "./stages.ts"

const model = (model_sku: string, price_m_input_tokens_usd: number, price_per_sec_usd = 0) =>
  ({ model_sku, price_m_input_tokens_usd, price_per_sec_usd }) as OrgModel

test("stages are read from their header, and each costs what its model does", () => {
  const stages = readStages(
    "small;result=success;questions=3;tokens=100;ms=4.1, gro%C3%9F;result=success;questions=1;tokens=50;ms=120",
  )
  expect(stages).toEqual([
    { model: "small", result: "success", questions: 3, tokens: 100 },
    { model: "groß", result: "success", questions: 1, tokens: 50 },
  ])
  expect(priceOf(stages, [model("small", 1), model("groß", 10)])).toBeCloseTo(0.0006)
  expect(priceOf(stages, [model("small", 1), model("groß", 10, 1)])).toBeNull()
  expect(readStages(null)).toEqual([])
})
