/** Reads package-lock.json: the packages that running Umpire needs, on every platform, as npm would place them. */
import { readFileSync } from "node:fs"
import { join } from "node:path"

export interface LockedPackage {
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly optional?: boolean
  readonly cpu?: readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** By place, such as `node_modules/a/node_modules/b`; the project itself is at "". */
export type LockedPackages = Readonly<Record<string, LockedPackage>>

const root = join(import.meta.dirname, "..")

/** Where the clone has ONNX Runtime. */
export const onnxRuntime = "node_modules/onnxruntime-node"

export function readLock(folder = root): LockedPackages {
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
    packages: LockedPackages
  }
  return packages
}

/** What the `dependencies` of the project reach, without what only development or the console's build needs. */
export function runtimePackages(lock: LockedPackages): LockedPackages {
  const found = new Map<string, LockedPackage>()
  const waiting = Object.keys(lock[""]?.dependencies ?? {}).map((name) => placeOf(lock, "", name, true))
  while (waiting.length > 0) {
    const place = waiting.pop()
    const locked = place === undefined || found.has(place) ? undefined : lock[place]
    if (place === undefined || locked === undefined) continue
    const entry = place === onnxRuntime ? withoutInstaller(locked) : locked
    found.set(place, entry)
    for (const [name, required] of wanted(entry)) waiting.push(placeOf(lock, place, name, required))
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** ONNX Runtime without the packages that only its install script needs. */
function withoutInstaller(entry: LockedPackage): LockedPackage {
  const common = Object.entries(entry.dependencies ?? {}).filter(([name]) => name === "onnxruntime-common")
  return { ...entry, dependencies: Object.fromEntries(common) }
}

/**
 * By name or place: of llama.cpp, the builds for GPUs, of which `umpire gpu install` brings the one that fits, and one that npm installs
 * on x64 though it is for a processor that Umpire does not run on.
 */
export const isUnusedBuild = (name: string): boolean =>
  /@node-llama-cpp\/(?:.*-(?:cuda|cuda-ext|vulkan)|linux-armv7l)$/.test(name)

/** Optional packages that the lock lacks, as `wanted by: name@version`: `npm ci` refuses such a lock. */
export function missingOptionals(lock: LockedPackages): { place: string; name: string; version: string }[] {
  return Object.entries(lock).flatMap(([place, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => placeOf(lock, place, name, false) === undefined)
      .map(([name, version]) => ({ place, name, version })),
  )
}

export const packageName = (place: string): string =>
  place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)

function wanted(entry: LockedPackage): (readonly [name: string, required: boolean])[] {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta } = entry
  return [
    ...Object.keys(dependencies).map((name) => [name, true] as const),
    ...Object.keys(optionalDependencies).map((name) => [name, false] as const),
    ...Object.keys(peerDependencies)
      .filter((name) => peerDependenciesMeta?.[name]?.optional !== true)
      .map((name) => [name, true] as const),
  ]
}

/** Where Node finds the package from `from`: there, or in a folder above. */
function placeOf(lock: LockedPackages, from: string, name: string, required: boolean): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf("/node_modules/"), 0))) {
    const place = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`
    if (lock[place]) return place
    if (folder === "") break
  }
  if (required) throw new Error(`Cannot read package-lock.json: ${from} needs ${name}, which it lacks`)
  return undefined
}
