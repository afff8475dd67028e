/**
 * Makes what `npm pack` puts into the package beside the model files: `dist/`, which is `src/` without types; a new
 * cluster for the embedded database; the built console; the exact versions of all runtime packages; their bill of
 * materials; ONNX Runtime. npm runs it before and, with --clean, after packing.
 */
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { dirname, join, relative, sep } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import manifest from "../package.json" with { type: "json" }
import { buildConsole } from "./build-console.mjs"
import { bundleOnnxRuntime, unbundleOnnxRuntime } from "./bundle-onnx-runtime.ts"
import { type LockedPackages, onnxRuntime, readLock, runtimePackages } from "./locked-packages.ts"
import { billOfMaterials } from "./sbom.ts"

const root = join(import.meta.dirname, "..")
const shrinkwrap = join(root, "npm-shrinkwrap.json")

async function main(): Promise<void> {
  if (process.argv.includes("--clean")) {
    // In a clone npm would read it instead of package-lock.json.
    rmSync(shrinkwrap, { force: true })
    unbundleOnnxRuntime()
  } else {
    buildConsole()
    bundleOnnxRuntime()
    stripTypes(join(root, "src"), join(root, "dist"))
    stripTypes(join(root, "packages", "schema-grammar", "src"), join(root, "dist", "schema-grammar"))
    await dumpCluster(join(root, "dist", "store", "cluster.tar.gz"))
    const runtime = runtimePackages(readLock())
    writeFileSync(shrinkwrap, JSON.stringify(shrinkwrapOf(runtime), null, 2))
    writeFileSync(join(root, "sbom.cdx.json"), JSON.stringify(billOfMaterials(manifest, runtime), null, 2))
  }
}

/**
 * Every line and column of the result is that of the source: types become spaces, and `.js` is as long as `.ts`. So a
 * stack of an installed package reads like one of a clone, without source maps.
 */
function stripTypes(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  const files = readdirSync(from, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of files) {
    if (name.endsWith(".test.ts")) continue
    const source = join(parentPath, name)
    const target = join(to, source.slice(from.length)).replace(/\.ts$/, ".js")
    mkdirSync(dirname(target), { recursive: true })
    if (name.endsWith(".ts"))
      writeFileSync(target, toJavaScript(readFileSync(source, "utf8"), dirname(target)))
    else cpSync(source, target)
  }
}

/** A new cluster for the embedded database, as creating one would leave it: no tables, no password, no secret. */
async function dumpCluster(file: string): Promise<void> {
  const postgres = await PGlite.create()
  writeFileSync(file, await (await postgres.dumpDataDir("gzip")).bytes())
  await postgres.close()
}

/**
 * Relative imports, and the entries of threads and child processes, which are named by `new URL`. The workspace's own
 * packages are not on a registry: they lie in `dist/` too.
 */
const toJavaScript = (source: string, folder: string): string =>
  stripTypeScriptTypes(source)
    .replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1")
    .replaceAll('"@umpire/schema-grammar"', () => {
      const path = relative(folder, join(root, "dist", "schema-grammar", "index.js")).replaceAll(sep, "/")
      return JSON.stringify(path.startsWith(".") ? path : `./${path}`)
    })

const bundled = [onnxRuntime, "node_modules/onnxruntime-common"]

/**
 * npm installs a dependency exactly as its shrinkwrap says: these versions, none of the large builds for GPUs that
 * `overrides` leaves out, and no package's own install script, because none is marked to have one.
 */
function shrinkwrapOf(runtime: LockedPackages): object {
  const { name, version, license, bin, engines, dependencies, bundleDependencies } = manifest
  const packages = Object.entries(runtime).map(([place, entry]) => {
    const { hasInstallScript: _, dev: __, inBundle: ___, ...rest } = entry as Record<string, unknown>
    return [place, bundled.includes(place) ? { ...rest, inBundle: true } : rest]
  })
  const own = { name, version, license, dependencies, bundleDependencies, bin, engines }
  return {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: { "": own, ...Object.fromEntries(packages) },
  }
}

await main()
