import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterEach, expect, test } from "vitest"
import { includedModelFile } from "./included-models.ts"

const name = "umpire-decide-multilingual"
const source = join(import.meta.dirname, "..", "..", "packages", name)
const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** As npm lays packages out, in a project and globally; what is found from a file of Umpire. */
function layOut(files: readonly string[]): { readonly beside: string; readonly found: string | null } {
  const folder = mkdtempSync(join(tmpdir(), "umpire-included-"))
  folders.push(folder)
  const beside = join(folder, "node_modules", name)
  const umpire = join(folder, "node_modules", "umpire", "dist", "base")
  for (const path of [beside, umpire]) mkdirSync(path, { recursive: true })
  for (const file of files)
    if (file === "package.json") cpSync(join(source, file), join(beside, file))
    else writeFileSync(join(beside, file), "")
  const importer = pathToFileURL(join(umpire, "included-models.js")).href
  return { beside, found: includedModelFile(`${name}.onnx`, importer) }
}

test("a model that is a package is found where its package is installed beside Umpire", () => {
  const { beside, found } = layOut(["package.json", `${name}.onnx`])
  expect(found).toBe(join(beside, `${name}.onnx`))
})

test.each([
  ["that is not installed", []],
  ["without its file", ["package.json"]],
  ["that is only a file", [`${name}.onnx`]],
])("a package %s is no model", (_, files) => {
  expect(layOut(files).found).toBe(null)
})

test("a model of the installation is found in its folder, and nothing else is", () => {
  expect(basename(includedModelFile("umpire-decide-small.onnx") ?? "")).toBe("umpire-decide-small.onnx")
  expect(includedModelFile("none.onnx")).toBe(null)
})
