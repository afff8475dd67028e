/** Gives a test run a folder that its processes share, and at the end stops what was started in it. */
import { createRunFolder, removeRunFolder, runFolderVariable, stopShared } from "./postgres.ts"

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await createRunFolder()
  process.env[runFolderVariable] = folder
  return async () => {
    await stopShared(folder)
    await removeRunFolder(folder)
  }
}
