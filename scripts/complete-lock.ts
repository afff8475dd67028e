/**
 * Adds to package-lock.json the optional packages of other platforms that the registry at hand could not tell npm about;
 * without them `npm ci` refuses the lock. They get a version and a platform but no integrity, which npm fills in where
 * the registry has them. `node scripts/complete-lock.ts` says what it added.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type LockedPackage, missingOptionals } from "./locked-packages.ts"

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
const missing = missingOptionals(document.packages)
for (const { place, name, version } of missing) {
  const { dev, license } = document.packages[place] as { dev?: boolean; license?: string }
  const { cpu, os, libc } = platformOf(name)
  // In npm's own order, so that its next write changes nothing.
  document.packages[`node_modules/${name}`] = {
    version,
    ...(cpu ? { cpu } : {}),
    ...(dev === true ? { dev } : {}),
    ...(libc ? { libc } : {}),
    ...(license === undefined ? {} : { license }),
    optional: true,
    ...(os ? { os } : {}),
  }
}
const sorted = Object.entries(document.packages).toSorted(([a], [b]) => (a < b ? -1 : 1))
const complete = { ...document, packages: Object.fromEntries(sorted) }
if (missing.length > 0) writeFileSync(path, `${JSON.stringify(complete, null, 2)}\n`)
process.stdout.write(`${missing.length} packages of other platforms were missing from the lock\n`)
