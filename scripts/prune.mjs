/**
 * Removes from the installed packages what this platform never opens: onnxruntime-node holds the builds of every
 * platform, node-llama-cpp the sources of llama.cpp and builds for GPUs. npm runs it after each installation of the
 * package or of a clone. Packages that others use too stay as they are.
 * `node scripts/prune.mjs [FOLDER]`; plain JavaScript, because Node 20 runs it too.
 */
import { existsSync, readFileSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { basename, dirname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"

try {
  prune(realpathSync(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))))
} catch (error) {
  // An installation that cannot be written to works all the same; it is only larger.
  process.stderr.write(`umpire: cannot remove the builds of other platforms: ${error.message}\n`)
}

function prune(folder) {
  const onnx = ownPackage(folder, "onnxruntime-node")
  if (onnx) pruneBuilds(join(onnx, "bin", "napi-v6"))
  const llama = ownPackage(folder, "node-llama-cpp")
  if (llama) pruneLlama(folder, llama)
}

function pruneBuilds(builds) {
  const { platform, arch } = process
  // Without a build for this platform nothing is removed: the layout may have changed.
  if (!existsSync(join(builds, platform, arch))) return
  keepOnly(builds, platform)
  keepOnly(join(builds, platform), arch)
}

/** The builds for GPUs are several hundred MB; umpire gpu install brings the one that fits. */
function pruneLlama(folder, llama) {
  rmSync(join(llama, "llama", "gitRelease.bundle"), { force: true })
  for (const platform of ["linux-x64", "win-x64"])
    for (const build of ["cuda", "cuda-ext", "vulkan"]) {
      const name = `@node-llama-cpp/${platform}-${build}`
      const place = ownPackage(llama, name) ?? ownPackage(folder, name)
      if (place) rmSync(join(place, "bins"), { recursive: true, force: true })
    }
}

function keepOnly(parent, name) {
  for (const other of readdirSync(parent).filter((entry) => entry !== name))
    rmSync(join(parent, other), { recursive: true, force: true })
}

/**
 * Below the folder, or beside it where npm put it for this package alone. A link leads to a store that others share. Beside
 * a global installation are other global ones; its own packages are below it. npm writes a new project's manifest last.
 */
function ownPackage(folder, name) {
  const below = join(folder, "node_modules", name)
  if (existsSync(below)) return isInside(below, folder) ? below : undefined
  const modules = dirname(folder)
  const beside = join(modules, name)
  if (basename(modules) !== "node_modules" || !existsSync(beside) || !isInside(beside, modules))
    return undefined
  if (process.env.npm_config_global === "true") return undefined
  const project = readManifest(dirname(modules)) ?? {}
  if (needs(project, name) || needs(project, name, ["devDependencies"])) return undefined
  return usersOf(modules, name).every((user) => user === folder) ? beside : undefined
}

function isInside(path, parent) {
  return realpathSync(path).startsWith(parent + sep)
}

/** The packages of a folder node_modules that ask for another one. */
function usersOf(modules, name) {
  const folders = readdirSync(modules).flatMap((entry) =>
    entry.startsWith("@") ? readdirSync(join(modules, entry)).map((inner) => join(entry, inner)) : [entry],
  )
  return folders
    .map((entry) => join(modules, entry))
    .filter((place) => {
      const manifest = readManifest(place)
      // The builds for GPUs are asked for by node-llama-cpp, whose own users are looked at.
      return manifest !== undefined && needs(manifest, name) && !name.startsWith(`@${manifest.name}/`)
    })
}

function needs(manifest, name, fields = ["dependencies", "optionalDependencies", "peerDependencies"]) {
  return fields.some((field) => Object.hasOwn(manifest[field] ?? {}, name))
}

function readManifest(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  } catch {
    return undefined
  }
}
