/** Gives a test run a folder of its own, and at the end stops what was started in it and removes it. */
import { join } from "node:path"
import { stopShared } from "./postgres.ts"
import { createRunFolder, removeRunFolder } from "./run-folder.ts"

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await createRunFolder()
  // Where bin/umpire.js keeps it: engines, threads and gateways that tests start themselves start as fast.
  process.env["NODE_COMPILE_CACHE"] ??= join(
    import.meta.dirname,
    "..",
    "node_modules",
    ".cache",
    "umpire",
    "compiled",
  )
  return async () => {
    await stopShared(folder)
    await removeRunFolder(folder)
  }
}
