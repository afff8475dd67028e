import { basename } from "node:path"
import { expect, test } from "vitest"
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
