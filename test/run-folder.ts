/** The folder of one test run: what its processes share, and every temporary file that they make. It ends with the run. */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Where the run keeps what its processes share; set by the global setup. */
export const runFolderVariable = "UMPIRE_TEST_RUN_DIR"
const keptVariable = "UMPIRE_TEST_KEPT_DIR"

/** How long a hook may take that may have to fetch a program first: a browser, or packages of Debian. */
export const installMs = 900_000

/** The system's folder for temporary files, for what is fetched once and stays when the run ends. */
export const keptFolder = (): string => process.env[keptVariable] ?? tmpdir()

/** From here on the run's processes make their temporary files in it. Its name is short, because a socket's may have 107 bytes. */
export async function createRunFolder(): Promise<string> {
  const kept = keptFolder()
  const folder = await mkdtemp(join(kept, "umpire-run-"))
  const temporary = join(folder, "tmp")
  await mkdir(temporary)
  // The user that runs PostgreSQL has its clusters below.
  for (const path of [folder, temporary]) await chmod(path, 0o755)
  Object.assign(process.env, {
    [runFolderVariable]: folder,
    [keptVariable]: kept,
    TMPDIR: temporary,
  })
  return folder
}

export async function removeRunFolder(folder: string): Promise<void> {
  // What a test has killed may still be writing.
  await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
