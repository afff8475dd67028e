/** Which files and names `umpire models add` takes. */
import { copyFile, mkdtemp, readdir, stat, truncate } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createCatalog } from "../base/catalog.ts"
import { toModel } from "./catalog.ts"
import { operatorOn } from "../../test/operator.ts"
import { catalogHandlers } from "./models.ts"

const shipped = join(import.meta.dirname, "..", "..", "model")

async function add(changes: { readonly missingBytes?: number; readonly sku?: string }): Promise<unknown> {
  const dataDirectory = await mkdtemp(join(tmpdir(), "umpire-add-"))
  const name = (await readdir(shipped)).find((one) => one.endsWith(".gguf")) ?? ""
  const file = join(dataDirectory, "copy.gguf")
  await copyFile(join(shipped, name), file)
  const { size } = await stat(file)
  await truncate(file, size - (changes.missingBytes ?? 0))
  const handlers = catalogHandlers({
    dataDirectory,
    catalog: async () => createCatalog([] as never),
    read: toModel,
    added: () => undefined,
  })
  const sku = changes.sku === undefined ? {} : { sku: changes.sku }
  // Nothing of a database is asked.
  return await operatorOn(undefined as never, handlers).addModel({ body: { file, ...sku } })
}

test("a whole file is added, and one that lacks its last byte is truncated", async () => {
  expect(await add({})).toMatchObject({ sku: "copy" })
  await expect(add({ missingBytes: 1 })).rejects.toThrow(/it is truncated/)
})

test.each(["a b", "", "../x", "-x", "x\u0007", "x".repeat(129)])("the SKU %j is refused", async (sku) => {
  await expect(add({ sku })).rejects.toThrow(/sku: /)
})

test.each(["x", "Org/model-1.5:Q4_K_M", "x".repeat(128), "モデル"])("the SKU %j is taken", async (sku) => {
  expect(await add({ sku })).toMatchObject({ sku })
})
