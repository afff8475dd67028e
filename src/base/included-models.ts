/** Where the files of included models lie: in the folder `model`, or in a package of their own that is installed beside Umpire. */
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { join, parse } from "node:path"
import { isPackagedModel } from "./catalog.ts"

const directory = join(import.meta.dirname, "..", "..", "model")

/** Null where it is not installed. A package is looked for from `importer` on, as Node looks for what that imports. */
export function includedModelFile(file: string, importer = import.meta.url): string | null {
  const { name } = parse(file)
  if (isPackagedModel(name)) return packagedFile(name, importer)
  const path = join(directory, file)
  return existsSync(path) ? path : null
}

function packagedFile(name: string, importer: string): string | null {
  try {
    return createRequire(importer).resolve(`${name}/model`)
  } catch {
    // Neither is a package without its file installed.
    return null
  }
}
