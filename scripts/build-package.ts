/**
 * Makes the npm package: `node scripts/build-package.ts [FOLDER]` writes umpire-<version>.tgz there. It has `dist/`, which is `src/`
 * without types; a new cluster for the embedded database; the built console; the models; all runtime packages and their bill of
 * materials. The package is put together in a folder of its own: the clone and what is installed in it stay as they are.
 */
import { execFileSync } from "node:child_process"
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join, relative, resolve, sep } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import manifest from "../package.json" with { type: "json" }
import { buildConsole } from "./build-console.mjs"
import { copyBundled, packageDependencies } from "./bundled-packages.ts"
import { readLock, runtimePackages } from "./locked-packages.ts"
import { billOfMaterials } from "./sbom.ts"

const root = join(import.meta.dirname, "..")

async function main(target: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "umpire-pack-"))
  try {
    buildConsole()
    const made = join(folder, "dist")
    stripTypes(join(root, "src"), made, made)
    stripTypes(join(root, "packages", "schema-grammar", "src"), join(made, "schema-grammar"), made)
    writeTypes(join(made, "library"))
    await dumpCluster(join(made, "store", "cluster.tar.gz"))
    for (const file of globSync([...manifest.files, "README.md", "LICENSE"], { cwd: root }))
      cpSync(join(root, file), join(folder, file), { recursive: true })
    const runtime = runtimePackages(readLock())
    copyBundled(runtime, folder)
    writeFileSync(join(folder, "sbom.cdx.json"), JSON.stringify(billOfMaterials(manifest, runtime), null, 2))
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify(packageManifest(packageDependencies(runtime)), null, 2),
    )
    execFileSync("npm", ["pack", "--pack-destination", resolve(target), "--loglevel=error"], {
      cwd: folder,
      stdio: "inherit",
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Without what only a clone needs. */
function packageManifest(asked: ReturnType<typeof packageDependencies>): object {
  const { name, version, description, license, bin, type, engines } = manifest
  const library = { types: "./dist/library/index.d.ts", default: "./dist/library/index.js" }
  const inBrowser = { ...manifest.exports["./browser"], types: "./dist/library/browser.d.ts" }
  const exports = { ...manifest.exports, ".": library, "./browser": inBrowser }
  const scripts = { postinstall: "node scripts/keep-own-build.mjs" }
  const files = [...manifest.files, "dist", "sbom.cdx.json"]
  const bundleDependencies = Object.keys(asked.dependencies)
  return {
    name,
    version,
    description,
    license,
    bin,
    exports,
    files,
    type,
    scripts,
    ...asked,
    bundleDependencies,
    engines,
  }
}

/**
 * Every line and column of the result is that of the source: types become spaces, and `.js` is as long as `.ts`. So a
 * stack of an installed package reads like one of a clone, without source maps.
 */
function stripTypes(from: string, to: string, made: string): void {
  const files = readdirSync(from, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of files) {
    if (name.endsWith(".test.ts")) continue
    const source = join(parentPath, name)
    const target = join(to, source.slice(from.length)).replace(/\.ts$/, ".js")
    mkdirSync(dirname(target), { recursive: true })
    if (name.endsWith(".ts"))
      writeFileSync(target, toJavaScript(readFileSync(source, "utf8"), relative(dirname(target), made)))
    else cpSync(source, target)
  }
}

/** What a program or a page that imports the package sees; it imports nothing else. */
function writeTypes(library: string): void {
  const folder = mkdtempSync(join(tmpdir(), "umpire-types-"))
  const sources = ["index.ts", "browser.ts"].map((name) => join(root, "src", "library", name))
  const flags = ["--ignoreConfig", "--declaration", "--emitDeclarationOnly", "--skipLibCheck"]
  const modules = [
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--types",
    "node",
    "--rewriteRelativeImportExtensions",
  ]
  try {
    const tsc = join(root, "node_modules", ".bin", "tsc")
    execFileSync(tsc, [...flags, ...modules, "--rootDir", root, "--outDir", folder, ...sources], {
      stdio: "inherit",
    })
    for (const name of ["index.d.ts", "browser.d.ts", "types.d.ts", "error.d.ts"]) {
      const declared = readFileSync(join(folder, "src", "library", name), "utf8")
      writeFileSync(join(library, name), declared.replaceAll(/(?<="\.\/(?:types|error))\.ts(?=")/g, ".js"))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
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
const toJavaScript = (source: string, toDist: string): string =>
  stripTypeScriptTypes(source)
    .replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1")
    .replaceAll('"@umpire/schema-grammar"', () =>
      JSON.stringify(
        [".", ...toDist.split(sep).filter((part) => part !== ""), "schema-grammar", "index.js"].join("/"),
      ),
    )

await main(process.argv[2] ?? ".")
