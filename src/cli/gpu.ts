/** `umpire gpu`: says what GPU there is, and brings what uses it: ONNX Runtime's CUDA provider and a build of llama.cpp. */
import { execFileSync, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { cudaProviderFiles, cudaProviderFolder, hasCudaProvider } from "../base/cuda-provider.ts"
import { type CliContext, type Command, UsageError } from "./command.ts"

/** What a machine needs for CUDA, and what it has. */
interface GpuFacts {
  /** As the driver says it, such as 580.95; null without a driver. */
  readonly driver: string | null
  /** Libraries of the CUDA runtime that were not found. */
  readonly absent: readonly string[]
}

/** The first driver of CUDA 13. */
const driverMajorMin = 580
/** What both need. */
const libraries = ["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10"] as const
const llamaPackage = "@node-llama-cpp/linux-x64-cuda"
/** Of PyPI, where the provider is; npm's package fetches it from elsewhere when it is installed. */
const providerWheel = { name: "onnxruntime-gpu", python: "3.12", platform: "manylinux_2_28_x86_64" } as const

export const gpu: Command = {
  usage: ["umpire gpu status", "umpire gpu install"],
  options: {},
  run: async (context) => {
    const facts = findGpu()
    const missing = missingFor(facts, process.platform, process.arch)
    switch (context.positionals[0]) {
      case "status":
        context.stdout.write(`${drawFacts(facts)}${missing === null ? "" : `${missing}\n`}`)
        return missing === null && isInstalled() ? 0 : 1
      case "install":
        if (missing !== null) throw new UsageError(missing)
        return install(context)
      default:
        throw new UsageError("say status or install")
    }
  },
}

/** What keeps CUDA from running here, as a sentence; null when nothing does. */
export function missingFor({ driver, absent }: GpuFacts, platform: string, arch: string): string | null {
  if (platform === "darwin" && arch === "arm64")
    return "Metal is in the ordinary build of llama.cpp: nothing is to be installed"
  if (platform !== "linux" || arch !== "x64")
    return `CUDA is used on Linux on x64; on ${platform} ${arch} use a worker with a GPU (docs/gpu.md)`
  if (driver === null)
    return `no NVIDIA driver was found; install driver ${driverMajorMin} or newer, which CUDA 13 needs`
  if (Number(driver.split(".")[0]) < driverMajorMin)
    return `the NVIDIA driver is ${driver}; CUDA 13 needs ${driverMajorMin} or newer`
  return absent.length === 0
    ? null
    : `of the CUDA 13 runtime ${absent.join(", ")} was not found; install cuda-libraries-13-0`
}

function findGpu(): GpuFacts {
  const file = "/proc/driver/nvidia/version"
  const text = existsSync(file) ? readFileSync(file, "utf8") : ""
  const known = libraryFiles()
  return {
    driver: /Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1] ?? null,
    absent: libraries.filter((name) => !known.includes(name)),
  }
}

/** Where the loader looks, as far as that can be seen. */
function libraryFiles(): string {
  const folders = (process.env["LD_LIBRARY_PATH"] ?? "").split(":").filter((folder) => existsSync(folder))
  const given = folders.flatMap((folder) => readdirSync(folder)).join("\n")
  try {
    return `${given}\n${execFileSync("ldconfig", ["-p"], { encoding: "utf8" })}`
  } catch {
    return given
  }
}

const isInstalled = (): boolean => hasCudaProvider() && existsSync(join(modulesFolder(), llamaPackage))

const installed = (is: boolean): string => (is ? "installed" : "not installed: umpire gpu install")

function drawFacts({ driver, absent }: GpuFacts): string {
  return `NVIDIA driver: ${driver ?? "none"}
CUDA 13 runtime: ${absent.length === 0 ? "found" : "not found"}
ONNX Runtime's CUDA provider, for umpire-decide: ${installed(hasCudaProvider())}
CUDA build of llama.cpp, for GGUF models: ${installed(existsSync(join(modulesFolder(), llamaPackage)))}
`
}

/** Both belong to one machine and are large (143 and 230 MB packed), so that no package has them. */
function install({ stdout }: CliContext): number {
  const folder = mkdtempSync(join(tmpdir(), "umpire-gpu-"))
  try {
    const fetched = [installProvider(join(folder, "provider")), installLlama(folder)]
    stdout.write(
      `${fetched.join(" and ")} are installed; the next start of umpire serve uses them. umpire doctor says whether.\n`,
    )
    return 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Beside ONNX Runtime's own library, which looks for it there, of the same version: they call each other by their places in memory. */
function installProvider(folder: string): string {
  const { name, python, platform } = providerWheel
  const spec = `${name}==${pinnedVersion("onnxruntime-node")}`
  const wheel = ["--python-version", python, "--platform", platform, "--only-binary=:all:", "--no-deps"]
  fetchBy("python3", ["-m", "pip", "install", "--no-compile", ...wheel, "--target", folder, spec], folder)
  for (const file of cudaProviderFiles) {
    const fetched = join(folder, "onnxruntime", "capi", file)
    if (!existsSync(fetched)) throw new UsageError(`${spec} holds no ${file}`)
    cpSync(fetched, join(cudaProviderFolder(), file))
  }
  return spec
}

/** Beside node-llama-cpp, which looks for it there. */
function installLlama(folder: string): string {
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n')
  const spec = `${llamaPackage}@${pinnedVersion("node-llama-cpp")}`
  fetchBy("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev", spec], folder)
  const fetched = join(folder, "node_modules", llamaPackage)
  if (!existsSync(join(fetched, "bins"))) throw new UsageError(`${spec} holds no build`)
  const place = join(modulesFolder(), llamaPackage)
  rmSync(place, { recursive: true, force: true })
  cpSync(fetched, place, { recursive: true })
  return spec
}

function fetchBy(client: string, args: readonly string[], folder: string): void {
  mkdirSync(folder, { recursive: true })
  const { status, error } = spawnSync(client, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] })
  if (error) throw new UsageError(`${client} cannot be run: ${error.message}`)
  if (status !== 0) throw new UsageError(`${client} could not fetch it; what it said is above`)
}

/** The folder of packages that node-llama-cpp lies in. */
function modulesFolder(): string {
  const entry = fileURLToPath(import.meta.resolve("node-llama-cpp"))
  return entry.slice(0, entry.lastIndexOf(join("node_modules", "node-llama-cpp")) + "node_modules".length)
}

/** A library of another version is refused when a model is loaded. */
function pinnedVersion(name: string): string {
  const file = new URL("../../package.json", import.meta.url)
  const manifest: { dependencies: Record<string, string> } = JSON.parse(readFileSync(file, "utf8"))
  return manifest.dependencies[name] ?? ""
}
