/** `umpire gpu`: says what GPU there is, and brings the build of llama.cpp that uses it. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type CliContext, type Command, UsageError } from "./command.ts"

/** What a machine needs for the CUDA build, and what it has. */
interface GpuFacts {
  /** As the driver says it, such as 580.95; null without a driver. */
  readonly driver: string | null
  readonly runtime: boolean
}

/** The first driver of CUDA 13. */
const driverMajorMin = 580
const packageName = "@node-llama-cpp/linux-x64-cuda"
const libraries = ["libcudart.so.13", "libcublas.so.13"]

export const gpu: Command = {
  usage: ["umpire gpu status", "umpire gpu install"],
  options: {},
  run: async (context) => {
    const facts = findGpu()
    const missing = missingFor(facts, process.platform, process.arch)
    switch (context.positionals[0]) {
      case "status":
        context.stdout.write(`${drawFacts(facts)}${missing === null ? "" : `${missing}\n`}`)
        return missing === null ? 0 : 1
      case "install":
        if (missing !== null) throw new UsageError(missing)
        return install(context)
      default:
        throw new UsageError("say status or install")
    }
  },
}

/** What keeps the CUDA build from running here, as a sentence; null when nothing does. */
export function missingFor({ driver, runtime }: GpuFacts, platform: string, arch: string): string | null {
  if (platform === "darwin" && arch === "arm64")
    return "Metal is in the ordinary build: nothing is to be installed"
  if (platform !== "linux" || arch !== "x64")
    return `the CUDA build is for Linux on x64; on ${platform} ${arch} use a worker with a GPU (docs/gpu.md)`
  if (driver === null)
    return `no NVIDIA driver was found; install driver ${driverMajorMin} or newer, which CUDA 13 needs`
  if (Number(driver.split(".")[0]) < driverMajorMin)
    return `the NVIDIA driver is ${driver}; CUDA 13 needs ${driverMajorMin} or newer`
  return runtime
    ? null
    : `the CUDA 13 runtime was not found (${libraries.join(", ")}); install cuda-runtime-13-0`
}

function findGpu(): GpuFacts {
  const file = "/proc/driver/nvidia/version"
  const text = existsSync(file) ? readFileSync(file, "utf8") : ""
  const known = libraryPaths()
  return {
    driver: /Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1] ?? null,
    runtime: libraries.every((name) => known.includes(name)),
  }
}

function libraryPaths(): string {
  try {
    return execFileSync("ldconfig", ["-p"], { encoding: "utf8" })
  } catch {
    return ""
  }
}

const drawFacts = ({ driver, runtime }: GpuFacts): string =>
  `NVIDIA driver: ${driver ?? "none"}\nCUDA 13 runtime: ${runtime ? "found" : "not found"}\n`

/** Beside node-llama-cpp, which looks for it there; it belongs to one machine and is 143 MB packed, so that no package has it. */
function install({ stdout }: CliContext): number {
  const folder = mkdtempSync(join(tmpdir(), "umpire-gpu-"))
  try {
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n')
    const spec = `${packageName}@${pinnedVersion()}`
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev", spec], {
      cwd: folder,
      stdio: ["ignore", "inherit", "inherit"],
    })
    const fetched = join(folder, "node_modules", packageName)
    if (!existsSync(join(fetched, "bins"))) throw new UsageError(`${spec} holds no build`)
    const place = join(modulesFolder(), packageName)
    rmSync(place, { recursive: true, force: true })
    cpSync(fetched, place, { recursive: true })
    stdout.write(
      `${spec} is installed; the next start of umpire serve uses it. umpire doctor says whether.\n`,
    )
    return 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The folder of packages that node-llama-cpp lies in. */
function modulesFolder(): string {
  const entry = fileURLToPath(import.meta.resolve("node-llama-cpp"))
  return entry.slice(0, entry.lastIndexOf(join("node_modules", "node-llama-cpp")) + "node_modules".length)
}

/** A library of another version than node-llama-cpp's is refused when a model is loaded. */
function pinnedVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    dependencies: Record<string, string>
  }
  return manifest.dependencies["node-llama-cpp"] ?? ""
}
