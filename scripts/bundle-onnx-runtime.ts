/**
 * ONNX Runtime as the package brings it: bundled, with the builds of the supported platforms and without its install
 * script, which downloads files for GPUs on Linux x64 and fails where they cannot be reached. `npm pack` bundles what
 * lies in node_modules, so the builds that the clone lacks are put there before it and removed after it.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { onnxRuntime, readLock, withoutInstaller } from "./locked-packages.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, onnxRuntime)
const manifest = join(folder, "package.json")
/** Outside the package, so that it is not packed. */
const ownManifest = join(dirname(folder), ".onnxruntime-node.package.json")

const platforms = ["linux/x64", "linux/arm64", "darwin/arm64"]
const builds = "bin/napi-v6"

/** The published package has no file with its licence. */
const licence = `ONNX Runtime (https://github.com/microsoft/onnxruntime). The licences of what its libraries contain are in
ThirdPartyNotices.txt of that repository at the tag of this version. Umpire changed package.json: it names no scripts, and not the
packages that only they need.

MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

/** Files are only added or replaced by renaming: a server that runs from this clone goes on. */
export function bundleOnnxRuntime(): void {
  const published = unpackPublished()
  try {
    for (const platform of platforms) addBuild(published, platform)
    // A pack that was cut off has left the clone's own one there.
    if (!existsSync(ownManifest)) cpSync(manifest, ownManifest)
    replace(manifest, JSON.stringify(withoutInstaller(readJson(ownManifest)), null, 2))
    writeFileSync(join(folder, "LICENSE"), licence)
  } finally {
    rmSync(published, { recursive: true, force: true })
  }
}

/** Leaves the clone as it was: prune.mjs removes the builds of other platforms. */
export function unbundleOnnxRuntime(): void {
  if (existsSync(ownManifest)) renameSync(ownManifest, manifest)
  rmSync(join(folder, "LICENSE"), { force: true })
  execFileSync(process.execPath, [join(root, "scripts", "prune.mjs")])
}

/** What the registry has, whole: the clone has the builds of its own platform only. */
function unpackPublished(): string {
  const { version, integrity } = readLock()[onnxRuntime] ?? {}
  const target = mkdtempSync(join(tmpdir(), "umpire-onnxruntime-"))
  const pack = ["pack", `onnxruntime-node@${version}`, "--pack-destination", target, "--prefer-offline"]
  // Of its own, because npm hands the settings of `npm pack` on to what it runs.
  execFileSync("npm", [...pack, "--silent"], { cwd: target, env: environmentOf(process.env) })
  const tarball = join(target, `onnxruntime-node-${version}.tgz`)
  const hash = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`
  if (hash !== integrity)
    throw new Error(`Cannot pack: onnxruntime-node ${version} is not what the lock names`)
  const members = platforms.map((platform) => `package/${builds}/${platform}`)
  execFileSync("tar", ["-xzf", tarball, "-C", target, ...members])
  return target
}

function addBuild(published: string, platform: string): void {
  const from = join(published, "package", builds, platform)
  // The same library again; the binding asks for libonnxruntime.1.dylib.
  rmSync(join(from, `libonnxruntime.${readLock()[onnxRuntime]?.version}.dylib`), { force: true })
  cpSync(from, join(folder, builds, platform), { recursive: true, force: false })
}

const environmentOf = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !/^npm_(?:config_pack|config_dry_run|package|lifecycle)/.test(name),
    ),
  )

function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

const readJson = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>
