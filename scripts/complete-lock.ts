/**
 * Completes package-lock.json after npm has written it; `node scripts/complete-lock.ts` says what it changed.
 *
 * The builds of llama.cpp that are not used go, several hundred MB that npm would install on every laptop: npm reads from the lock which
 * optional packages a package asks for. The optional packages of other platforms that the registry at hand could not tell npm
 * about come; without them `npm ci` refuses the lock. They get a version and a platform but no integrity, which npm fills in
 * where the registry has them.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type LockedPackage, isUnusedBuild, missingOptionals } from "./locked-packages.ts"

const path = join(import.meta.dirname, "..", "package-lock.json")

interface Platform {
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
}

/** What the name of a platform package says: `@oxfmt/binding-linux-arm64-musl`, `@node-llama-cpp/mac-x64`. */
function platformOf(name: string): Platform {
  const words = (name.split("/").at(-1) ?? "").split("-")
  const systems = { mac: "darwin", win: "win32", windows: "win32" } as const
  const known = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"]
  const processors = ["arm", "arm64", "ia32", "ppc64", "riscv64", "s390x", "wasm32", "x64"]
  const translated = words.map((word) => (Object.hasOwn(systems, word) ? systems[word as "mac"] : word))
  const os = translated.filter((word) => known.includes(word))
  const cpu = words.filter((word) => processors.includes(word))
  const libc = words.includes("musl") ? ["musl"] : words.includes("gnu") ? ["glibc"] : []
  if (cpu.length !== 1) throw new Error(`Cannot tell the platform of ${name} from its name`)
  return { cpu, ...(os.length === 0 ? {} : { os }), ...(libc.length === 0 ? {} : { libc }) }
}

const document = JSON.parse(readFileSync(path, "utf8")) as { packages: Record<string, LockedPackage> }
const packages = Object.fromEntries(
  Object.entries(document.packages)
    .filter(([place]) => !isUnusedBuild(place))
    .map(([place, entry]) => [place, withoutUnusedBuilds(entry)]),
)
const removed = Object.keys(document.packages).length - Object.keys(packages).length
const missing = missingOptionals(packages)
for (const { place, name, version } of missing) {
  const { dev, license } = packages[place] as { dev?: boolean; license?: string }
  const { cpu, os, libc } = platformOf(name)
  // In npm's own order, so that its next write changes nothing.
  packages[`node_modules/${name}`] = {
    version,
    ...(cpu ? { cpu } : {}),
    ...(dev === true ? { dev } : {}),
    ...(libc ? { libc } : {}),
    ...(license === undefined ? {} : { license }),
    optional: true,
    ...(os ? { os } : {}),
  }
}
const sorted = Object.entries(packages).toSorted(([a], [b]) => (a < b ? -1 : 1))
writeFileSync(path, `${JSON.stringify({ ...document, packages: Object.fromEntries(sorted) }, null, 2)}\n`)
process.stdout.write(
  `${removed} unused builds are gone from the lock, ${missing.length} packages of other platforms are new\n`,
)

function withoutUnusedBuilds(entry: LockedPackage): LockedPackage {
  if (entry.optionalDependencies === undefined) return entry
  const wanted = Object.entries(entry.optionalDependencies).filter(([name]) => !isUnusedBuild(name))
  return { ...entry, optionalDependencies: Object.fromEntries(wanted) }
}
