/**
 * Programs that are built from their Go modules at first use, at exact versions, into the user's cache. Go itself must be there: a test
 * that cannot run must not look like one that passed.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { installMs } from "./run-folder.ts"
import { testCache } from "./test-packages.ts"

interface GoRun {
  /** One that calls Go itself, instead of Go. */
  readonly program?: string
  readonly args: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

/** What it printed. */
export function go({ program = "go", args, environment }: GoRun): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: "utf8",
    timeout: installMs,
    // Of which repository this folder is does not matter to what is built.
    env: { ...process.env, GOFLAGS: "-buildvcs=false", ...environment },
  })
  if (status === 0) return stdout
  const said = error?.message ?? stderr.trim().split("\n").at(-1)
  throw new Error(
    `Cannot build with Go (1.26 or newer is needed on the PATH): ${basename(program)} ${args.join(" ")}: ${said}`,
  )
}

/** Makes a folder of the cache once: what is made beside it is renamed when it is whole. */
export function madeOnce(name: string, make: (folder: string) => void): string {
  const folder = join(testCache, name)
  if (existsSync(folder)) return folder
  const own = `${folder}.${process.pid}`
  mkdirSync(own, { recursive: true })
  try {
    make(own)
    renameSync(own, folder)
  } catch (error) {
    // Another run was faster.
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return folder
}

/** The program of a package, such as `helm.sh/helm/v3/cmd/helm`. */
export function goProgram(path: string, version: string): string {
  const name = basename(path)
  const make = (folder: string): void =>
    void go({ args: ["install", `${path}@${version}`], environment: { GOBIN: folder } })
  return join(madeOnce(`${name}@${version}`, make), name)
}

/** The folder of a module's sources. */
export function goModule(path: string, version: string): string {
  const { Dir } = JSON.parse(go({ args: ["mod", "download", "-json", `${path}@${version}`] })) as {
    Dir: string
  }
  return Dir
}
