/** The folder of one test run: what its processes share, and every temporary file that they make. It ends with the run. */
import { constants, existsSync } from "node:fs"
import { access, chmod, mkdir, mkdtemp, readdir, rm, statfs, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Where the run keeps what its processes share; set by the global setup. */
export const runFolderVariable = "UMPIRE_TEST_RUN_DIR"
const keptVariable = "UMPIRE_TEST_KEPT_DIR"

/** How long a hook may take that may have to fetch a program first: a browser, or packages of Debian. */
export const installMs = 900_000

/** The system's folder for temporary files, for what is fetched once and stays when the run ends. */
export const keptFolder = (): string => process.env[keptVariable] ?? tmpdir()

/** Linux keeps files there in memory. A start of the product makes 1,400 files, which on a disk takes a fifth of its processor time. */
const inMemory = "/dev/shm"
/** The package is packed and installed there beside all else. */
const memoryBytesMin = 8 * 1024 ** 3
const prefix = "umpire-run-"

/** From here on the run's processes make their temporary files in it. Its name is short, because a socket's may have 107 bytes. */
export async function createRunFolder(): Promise<string> {
  const kept = keptFolder()
  const isRoomy = await hasRoomInMemory()
  const folder = await mkdtemp(join(isRoomy ? inMemory : kept, `${prefix}${process.pid}-`))
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

async function hasRoomInMemory(): Promise<boolean> {
  if (!existsSync(inMemory)) return false
  await removeLeftFolders()
  const { bavail, bsize } = await statfs(inMemory)
  return bavail * bsize >= memoryBytesMin && (await runsPrograms(inMemory))
}

/** Some systems let none be run from it. */
async function runsPrograms(place: string): Promise<boolean> {
  const folder = await mkdtemp(join(place, prefix))
  try {
    const program = join(folder, "program")
    await writeFile(program, "", { mode: 0o700 })
    await access(program, constants.X_OK)
    return true
  } catch {
    return false
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Of runs that were killed: what is in memory takes it until the machine is started again. */
async function removeLeftFolders(): Promise<void> {
  for (const name of await readdir(inMemory)) {
    const pid = /^umpire-run-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !existsSync(join("/proc", pid))) await removeRunFolder(join(inMemory, name))
  }
}

export async function removeRunFolder(folder: string): Promise<void> {
  // What a test has killed may still be writing.
  await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
