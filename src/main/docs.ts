/** Reads the guides that agents can read. */
import { readFile, readdir } from "node:fs/promises"
import { join } from "node:path"

const directory = join(import.meta.dirname, "..", "..", "docs")

/** By file name; none where the package came without them. */
export async function loadDocs(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".md"))
  const pages = names
    .toSorted()
    .map(async (name) => [name, await readFile(join(directory, name), "utf8")] as const)
  return new Map(await Promise.all(pages))
}
