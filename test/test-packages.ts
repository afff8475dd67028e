/**
 * Packages that only some tests need and that are too large for every clone: installed at first use into the user's cache,
 * outside the clone, at exact versions.
 */
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, rename, rm } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

export const testCache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "umpire-tests")

/**
 * Returns the folder of the package, such as `chdb@3.4.0`. Install scripts do not run. `besides` are packages that it expects to
 * find beside it, with their versions.
 */
export async function testPackage(
  name: string,
  version: string,
  besides: readonly string[] = [],
): Promise<string> {
  const folder = join(testCache, `${name.replace("/", "+")}@${version}`)
  const place = join(folder, "node_modules", name)
  if (existsSync(place)) return place
  // Installed beside and renamed: a run that is cut off leaves nothing half, and of two runs at once one wins.
  const own = `${folder}.${process.pid}`
  await mkdir(own, { recursive: true })
  try {
    const options = ["--prefix", own, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"]
    await promisify(execFile)("npm", ["install", ...options, `${name}@${version}`, ...besides])
    await rename(own, folder).catch((error: unknown) => {
      if (!existsSync(place)) throw error
    })
  } finally {
    await rm(own, { recursive: true, force: true })
  }
  return place
}
