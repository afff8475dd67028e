/** What lies in the package beside the code: its version, the built console, and the guides that agents can read. */
import { readFileSync } from "node:fs"
import { readFile, readdir } from "node:fs/promises"
import { join } from "node:path"

const root = join(import.meta.dirname, "..", "..")

export const { version }: { readonly version: string } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
)

export const consoleDirectory = join(root, "console", "dist")

/** The one that a browser decides with. */
export const browserModelFile = join(root, "model", "umpire-decide-small.onnx")

/** By file name; none where the package came without them. */
export async function loadDocs(): Promise<ReadonlyMap<string, string>> {
  const directory = join(root, "docs")
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".md"))
  const pages = names
    .toSorted()
    .map(async (name) => [name, await readFile(join(directory, name), "utf8")] as const)
  return new Map(await Promise.all(pages))
}
