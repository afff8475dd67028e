/** A Python of a test's own, with packages from PyPI at exact versions. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"

/** Returns the interpreter: the environment ends with the folder. */
export async function installPython(folder: string, packages: readonly string[]): Promise<string> {
  const run = promisify(execFile)
  await run("python3", ["-m", "venv", join(folder, "venv")])
  const python = join(folder, "venv", "bin", "python")
  await run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages])
  return python
}
