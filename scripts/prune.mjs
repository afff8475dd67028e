/**
 * Removes from the installed packages what this platform never opens: onnxruntime-node holds the builds of every
 * platform, node-llama-cpp the sources of llama.cpp and builds for GPUs. npm runs it after each installation of the
 * package or of a clone.
 * `node scripts/prune.mjs [FOLDER]`; plain JavaScript, because Node 20 runs it too.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const folder = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))

try {
  const onnx = packageFolder("onnxruntime-node")
  if (onnx) pruneBuilds(join(onnx, "bin", "napi-v6"))
  const llama = packageFolder("node-llama-cpp")
  if (llama) pruneLlama(llama)
} catch (error) {
  // An installation that cannot be written to works all the same; it is only larger.
  process.stderr.write(`umpire: cannot remove the builds of other platforms: ${error.message}\n`)
}

function pruneBuilds(builds) {
  const { platform, arch } = process
  // Without a build for this platform nothing is removed: the layout may have changed.
  if (!existsSync(join(builds, platform, arch))) return
  keepOnly(builds, platform)
  keepOnly(join(builds, platform), arch)
}

/** The builds for GPUs are several hundred MB; umpire gpu install brings the one that fits. */
function pruneLlama(llama) {
  rmSync(join(llama, "llama", "gitRelease.bundle"), { force: true })
  const builds = [join(llama, "..", "@node-llama-cpp"), join(llama, "node_modules", "@node-llama-cpp")]
  for (const place of builds.filter(existsSync))
    for (const name of readdirSync(place).filter((one) => /-(?:cuda|cuda-ext|vulkan)$/.test(one)))
      rmSync(join(place, name, "bins"), { recursive: true, force: true })
}

function keepOnly(parent, name) {
  for (const other of readdirSync(parent).filter((entry) => entry !== name))
    rmSync(join(parent, other), { recursive: true, force: true })
}

/** By path: not every package lets its package.json be resolved. */
function packageFolder(name) {
  const roots = createRequire(join(folder, "package.json")).resolve.paths(name) ?? []
  return roots.map((place) => join(place, name)).find((place) => existsSync(join(place, "package.json")))
}
