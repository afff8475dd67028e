/** Properties of the code itself: layers point one way, and the words it must not use do not appear. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import { expect, test } from "vitest"

/** Each layer and the layers beneath it that it may import. */
const layers: Record<string, readonly string[]> = {
  contract: [],
  scoring: [],
  base: ["contract"],
  engine: ["contract", "scoring", "base"],
  store: ["contract", "base"],
  gateway: ["contract", "scoring", "base", "engine", "store"],
  control: ["contract", "base", "store"],
  server: ["contract", "base"],
  cli: ["contract", "scoring", "base"],
  main: ["contract", "scoring", "base", "engine", "store", "gateway", "control", "server", "cli"],
}

const root = join(import.meta.dirname, "..", "src")
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file))
const layerOf = (file: string): string => file.replace(/\.ts$/, "").split(sep)[0] ?? ""

test("every file stands in a layer", () => {
  const strays = files.filter((file) => !Object.hasOwn(layers, layerOf(file)))
  expect(strays).toEqual([])
})

test.each(files)("%s imports only its own layer and those beneath it", (file) => {
  const allowed = [layerOf(file), ...(layers[layerOf(file)] ?? [])]
  for (const target of relativeImports(file)) {
    const other = layerOf(relative(root, join(root, dirname(file), target)))
    if (other === ".." || other === "")
      expect(file, `${file} reaches out of src`).toMatch(/\.test\.ts$|conformance\.ts$/)
    else expect(allowed, `${file} imports ${target}`).toContain(other)
  }
})

test.each(files.filter((file) => !file.endsWith(".test.ts")))("%s says on top what it is for", (file) => {
  expect(readFileSync(join(root, file), "utf8")).toMatch(/^\/\*\*\s/)
})

function relativeImports(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8")
  return [...text.matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)].map((match) => match[1] ?? "")
}
