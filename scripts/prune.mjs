/**
 * Removes from the installed packages what this platform never opens: onnxruntime-node holds the builds of every
 * platform, node-llama-cpp the sources of llama.cpp and builds for GPUs, many packages source maps, sources and guides beside
 * what they are built to, node its headers; and npm installs the packages of every platform that a shrinkwrap names.
 * npm runs it after each installation of the package or of a clone. Packages that others use too stay as they are.
 * `node scripts/prune.mjs [FOLDER]`; plain JavaScript, because Node 20 runs it too.
 */
import { existsSync, lstatSync, readFileSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { basename, dirname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"

const cpuBuilds = [
  "linux-arm64",
  "linux-armv7l",
  "linux-x64",
  "mac-arm64-metal",
  "mac-x64",
  "win-arm64",
  "win-x64",
]
const gpuBuilds = ["linux-x64", "win-x64"].flatMap((platform) =>
  ["cuda", "cuda-ext", "vulkan"].map((build) => `${platform}-${build}`),
)

/** Folders with what is opened of them. */
const unopened = [
  ["dejavu-fonts-ttf", /^(?:ttf|LICENSE|AUTHORS|package\.json)$/],
  ["dejavu-fonts-ttf/ttf", /^DejaVuSans(?:-Bold)?\.ttf$/],
  ["@openai/agents-realtime/dist/bundle", /^$/],
]

const licenceFile = /^(?:licen[cs]e|notice|copying|copyright|third)/i

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
  const stripe = ownPackage(folder, "stripe")
  if (stripe) pruneDeclarations(join(stripe, "cjs"))
  pruneForeign(folder)
  pruneUnread(folder)
  pruneUnopened(folder)
  pruneHeaders(folder)
}

/** Packages below the folder that say they are for another system, processor or C library. */
function pruneForeign(folder) {
  const modules = join(folder, "node_modules")
  if (!existsSync(modules) || !isInside(modules, folder)) return
  const own = { os: process.platform, cpu: process.arch, libc: libraryOfC() }
  for (const place of packagesIn(modules).filter(isFolder)) {
    const manifest = readManifest(place) ?? {}
    const isForeign = Object.entries(own).some(([field, value]) => !allows(manifest[field], value))
    if (isForeign) rmSync(place, { recursive: true, force: true })
  }
}

/** Elsewhere than on Linux npm does not look at it. */
function libraryOfC() {
  if (process.platform !== "linux") return undefined
  return process.report.getReport().header.glibcVersionRuntime === undefined ? "musl" : "glibc"
}

/** A list of values, or of those that are not meant (`!win32`); without one, all are. */
function allows(listed, value) {
  if (listed === undefined || value === undefined) return true
  const list = [listed].flat()
  if (list.includes(`!${value}`)) return false
  return list.includes(value) || list.every((one) => one.startsWith("!"))
}

/** Umpire imports the ES modules, which have declarations of their own: 8 MB. */
function pruneDeclarations(folder) {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && entry.name.endsWith(".d.ts"))
      rmSync(join(entry.parentPath ?? entry.path, entry.name))
}

/** Of the Node that a clone brings: 61 MB that only a compiler reads. */
function pruneHeaders(folder) {
  const builds = join(folder, "node_modules", "node", "node_modules")
  if (!existsSync(builds) || !isInside(builds, folder)) return
  for (const build of readdirSync(builds))
    rmSync(join(builds, build, "include"), { recursive: true, force: true })
}

/**
 * Of the packages below the folder, which no other program uses, what neither Node nor the type checker opens: 80 MB in a clone.
 * Licences and notices stay, and the README of a package that has no other file for its licence.
 */
function pruneUnread(folder) {
  const modules = join(folder, "node_modules")
  if (!existsSync(modules) || !isInside(modules, folder)) return
  for (const place of packagesIn(modules).filter(isFolder)) {
    const isSourceUsed = usesSources(readManifest(place) ?? {})
    const hasLicence = readdirSync(place).some((name) => licenceFile.test(name))
    for (const entry of readdirSync(place, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath ?? entry.path, entry.name)
      const inPackage = path.slice(place.length + 1)
      const isUnread =
        /\.(?:[cm]?[jt]s|css)\.map$/.test(entry.name) ||
        (/\.mdx?$/i.test(entry.name) &&
          !licenceFile.test(entry.name) &&
          (hasLicence || !/^readme/i.test(entry.name))) ||
        (!isSourceUsed && /^src[/\\].*(?<!\.d)\.[cm]?tsx?$/.test(inPackage))
      if (entry.isFile() && isUnread) rmSync(path)
    }
  }
}

/** Faces and scales that no code of ours names, and a build for browsers: 30 MB in a clone. */
function pruneUnopened(folder) {
  const modules = join(folder, "node_modules")
  if (!existsSync(modules) || !isInside(modules, folder)) return
  for (const [inPackage, isOpened] of unopened) {
    const place = join(modules, inPackage)
    if (!existsSync(place) || !isInside(place, folder)) continue
    for (const name of readdirSync(place).filter((file) => !isOpened.test(file)))
      rmSync(join(place, name), { recursive: true, force: true })
  }
}

function usesSources({ main, module, types, typings, bin, exports }) {
  const entries = JSON.stringify({ main, module, types, typings, bin, exports }, withoutCondition)
  return entries.includes("src/")
}

/** Conditions such as `@zod/source` are only for programs that ask for them. */
function withoutCondition(key, value) {
  return key.startsWith("@") ? undefined : value
}

function pruneBuilds(builds) {
  const { platform, arch } = process
  // Without a build for this platform nothing is removed: the layout may have changed.
  if (!existsSync(join(builds, platform, arch))) return
  keepOnly(builds, platform)
  keepOnly(join(builds, platform), arch)
}

/**
 * The builds for GPUs are several hundred MB; umpire gpu install brings the one that fits. npm installs builds for other
 * processors too, which node-llama-cpp allows for cross compilation.
 */
function pruneLlama(folder, llama) {
  rmSync(join(llama, "llama", "gitRelease.bundle"), { force: true })
  const { platform, arch } = process
  const systems = { darwin: "mac", win32: "win" }
  const own = `${systems[platform] ?? platform}-${arch === "arm" ? "armv7l" : arch}`
  for (const build of [...cpuBuilds.filter((name) => !name.startsWith(own)), ...gpuBuilds]) {
    const name = `@node-llama-cpp/${build}`
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
  return packagesIn(modules).filter((place) => {
    const manifest = readManifest(place)
    // The builds for GPUs are asked for by node-llama-cpp, whose own users are looked at.
    return manifest !== undefined && needs(manifest, name) && !name.startsWith(`@${manifest.name}/`)
  })
}

/** A link leads to a workspace or to a store. */
function isFolder(path) {
  return lstatSync(path).isDirectory()
}

function packagesIn(modules) {
  return readdirSync(modules)
    .flatMap((entry) =>
      entry.startsWith("@") ? readdirSync(join(modules, entry)).map((inner) => join(entry, inner)) : [entry],
    )
    .map((entry) => join(modules, entry))
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
