/**
 * Builds `llama-server` from the source inside the package of node-llama-cpp, for the long tests and the benchmarks:
 * `node scripts/build-llama-server.ts [--jobs=N]`. It needs git, cmake and a C++ compiler, and takes up to an hour of one core.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { builtLlamaServer } from "../test/llama-server.ts"
import { readLock } from "./locked-packages.ts"

const llama = "node-llama-cpp"

/** Static, so that one file is all; its arithmetic is that of this machine, as the package's own library chooses. */
const settings = {
  CMAKE_BUILD_TYPE: "Release",
  BUILD_SHARED_LIBS: "OFF",
  GGML_OPENMP: "OFF",
  LLAMA_OPENSSL: "OFF",
  LLAMA_BUILD_TESTS: "OFF",
  LLAMA_BUILD_EXAMPLES: "OFF",
  LLAMA_BUILD_APP: "OFF",
  LLAMA_BUILD_UI: "OFF",
  LLAMA_USE_PREBUILT_UI: "OFF",
  LLAMA_ALL_WARNINGS: "OFF",
}

const { values } = parseArgs({ options: { jobs: { type: "string", default: "1" } } })
if (existsSync(builtLlamaServer)) console.log(`It is built: ${builtLlamaServer}`)
else build()

function build(): void {
  const cache = dirname(builtLlamaServer)
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, "build-"))
  const run = (command: string, ...options: readonly string[]): void =>
    void execFileSync(command, options, { cwd: folder, stdio: "inherit" })
  try {
    run("tar", "-xzf", packed(folder), "package/llama/gitRelease.bundle")
    run("git", "clone", "--quiet", "package/llama/gitRelease.bundle", "source")
    run(
      "cmake",
      "-S",
      "source",
      "-B",
      "out",
      ...Object.entries(settings).map((pair) => `-D${pair.join("=")}`),
    )
    run("cmake", "--build", "out", "--target", "llama-server", "-j", values.jobs)
    copyFileSync(join(folder, "out", "bin", "llama-server"), `${builtLlamaServer}.new`)
    renameSync(`${builtLlamaServer}.new`, builtLlamaServer)
    console.log(`Built ${builtLlamaServer}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An installation removes the source, so that the package is fetched again: what the lock names, and nothing else. */
function packed(folder: string): string {
  const { version, integrity } = readLock()[`node_modules/${llama}`] ?? {}
  execFileSync("npm", ["pack", `${llama}@${version}`, "--prefer-offline", "--silent"], { cwd: folder })
  const tarball = join(folder, `${llama}-${version}.tgz`)
  const hash = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`
  if (hash !== integrity) throw new Error(`Cannot build: ${llama} ${version} is not what the lock names`)
  return tarball
}
