/** Gives a test run a folder that its processes share, and at the end stops what was started in it. */
import { join } from "node:path"
import { createRunFolder, removeRunFolder, runFolderVariable, stopShared } from "./postgres.ts"

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await createRunFolder()
  process.env[runFolderVariable] = folder
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
