import { basename } from "node:path"
import { expect, test } from "vitest"
import { ModelConfig } from "../base/config-models.ts"
import { loadCatalog } from "./catalog.ts"

const filesOf = async (decisionModel?: string): Promise<(string | undefined)[]> => {
  const catalog = await loadCatalog([], decisionModel === undefined ? {} : { decisionModel })
  return ["umpire-decide", "umpire-decide-small"].map((sku) => basename(catalog.find(sku)?.file ?? ""))
}

test("umpire-decide is the base model, and the small one where that is chosen", async () => {
  expect(await filesOf()).toEqual(["umpire-decide.onnx", "umpire-decide-small.onnx"])
  expect(await filesOf("umpire-decide-small")).toEqual([
    "umpire-decide-small.onnx",
    "umpire-decide-small.onnx",
  ])
})

test("the default answers under its own name whichever model was chosen", async () => {
  expect((await loadCatalog([], { decisionModel: "umpire-decide-small" })).fallback.sku).toBe("umpire-decide")
})

test("an entry for an included model needs no file: it says what it costs or where it runs", async () => {
  const entries = ["umpire-decide", "smollm2-135m-instruct", "all-minilm-l6-v2"].map((sku) =>
    ModelConfig.parse({ sku, price_m_input_tokens_usd: "3" }),
  )
  const catalog = await loadCatalog(entries)
  for (const { sku } of entries) {
    const model = catalog.find(sku) ?? catalog.find(sku, "generation")
    expect([sku, model?.prices.inputTokenTicks]).toEqual([sku, 30_000n])
    expect(model?.contextTokensMax).toBeGreaterThan(100)
  }
  expect(basename(catalog.find("umpire-decide")?.file ?? "")).toBe("umpire-decide.onnx")
  const elsewhere = ModelConfig.parse({ sku: "somebody-elses" })
  await expect(loadCatalog([elsewhere])).rejects.toThrow("neither a file nor context_tokens_max")
})
