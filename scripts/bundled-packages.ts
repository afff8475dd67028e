/**
 * The runtime packages as the npm package brings them: bundled, so that what is installed is what the lock names, and without what
 * running them never opens. Native builds are optional dependencies instead, of which npm installs those of the platform; only ONNX
 * Runtime has its builds in one package.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { type LockedPackage, type LockedPackages, onnxRuntime, packageName } from "./locked-packages.ts"

const root = join(import.meta.dirname, "..")
const builds = "bin/napi-v6"
const onnxPlatforms = ["linux/x64", "linux/arm64", "darwin/arm64"]

/** Sources and declarations, guides and source maps; and what npm would compile. */
const unreadFile = /\.(?:[cm]?tsx?|map|flow|mdx?)$|^binding\.gyp$/i
const licenceFile = /^(?:licen[cs]e|notice|copying|copyright|third)/i

/** Beside that, of single packages: the sources of llama.cpp, modules in a form that is not imported, tables of n-grams and faces that nothing reads. */
const unread = [
  "node-llama-cpp/llama/gitRelease.bundle",
  "stripe/cjs",
  "eld/src/ngrams/(?!extrasmall\\.js$)",
  "dejavu-fonts-ttf/ttf/(?!DejaVuSans(?:-Bold)?\\.ttf$)",
  `onnxruntime-node/${builds}/`,
].map((path) => new RegExp(`^node_modules/${path}`))

/** Copies them below `folder`, in the places that the lock gives them. */
export function copyBundled(runtime: LockedPackages, folder: string): void {
  for (const [place, entry] of Object.entries(runtime)) {
    if (isNative(entry)) continue
    copyPackage(place, folder)
    const manifest = join(folder, place, "package.json")
    writeFileSync(manifest, JSON.stringify(bundledManifest(readJson(manifest), entry), null, 2))
  }
  addOnnxRuntime(runtime, join(folder, onnxRuntime))
}

/** What the package asks for: npm bundles no peers of bundled packages and installs no native builds that only those ask for. */
export function packageDependencies(
  runtime: LockedPackages,
): Record<"dependencies" | "optionalDependencies", Record<string, string>> {
  const versions = (isWanted: (place: string, entry: LockedPackage) => boolean): Record<string, string> =>
    Object.fromEntries(
      Object.entries(runtime)
        .filter(([place, entry]) => isWanted(place, entry))
        .map(([place, { version = "*" }]) => [packageName(place), version]),
    )
  return {
    dependencies: versions(
      (place, entry) => !isNative(entry) && place === `node_modules/${packageName(place)}`,
    ),
    optionalDependencies: versions((_, entry) => isNative(entry)),
  }
}

const isNative = ({ optional, cpu }: LockedPackage): boolean => optional === true && cpu !== undefined

/** The packages that it has below itself are copied to their own places. */
function copyPackage(place: string, folder: string): void {
  const from = join(root, place)
  const hasLicence = readdirSync(from).some((name) => licenceFile.test(name))
  const isRead = (path: string): boolean => {
    const name = basename(path)
    const inClone = path.slice(root.length + 1)
    if (unread.some((pattern) => pattern.test(inClone))) return false
    if (licenceFile.test(name) || (!hasLicence && /^readme/i.test(name))) return true
    return !unreadFile.test(name)
  }
  const filter = (path: string): boolean =>
    path === from || (basename(path) !== "node_modules" && isRead(path))
  cpSync(from, join(folder, place), { recursive: true, filter })
}

/** It runs no script, and asks for what the lock says. */
function bundledManifest(manifest: Readonly<Record<string, unknown>>, entry: LockedPackage): object {
  const { scripts: _, devDependencies: __, gypfile: ___, ...rest } = manifest
  return { ...rest, dependencies: entry.dependencies, optionalDependencies: entry.optionalDependencies }
}

/** The published package has no file with its licence. */
const onnxLicence = `ONNX Runtime (https://github.com/microsoft/onnxruntime). The licences of what its libraries contain are in
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

/** The builds as the registry has them, checked against the lock. */
function addOnnxRuntime(runtime: LockedPackages, target: string): void {
  const { version, integrity } = runtime[onnxRuntime] ?? {}
  const published = mkdtempSync(join(tmpdir(), "umpire-onnxruntime-"))
  try {
    const pack = ["pack", `onnxruntime-node@${version}`, "--pack-destination", published, "--prefer-offline"]
    execFileSync("npm", [...pack, "--silent"], { cwd: published })
    const tarball = join(published, `onnxruntime-node-${version}.tgz`)
    const hash = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`
    if (hash !== integrity)
      throw new Error(`Cannot pack: onnxruntime-node ${version} is not what the lock names`)
    const members = onnxPlatforms.map((platform) => `package/${builds}/${platform}`)
    execFileSync("tar", ["-xzf", tarball, "-C", target, "--strip-components=1", ...members])
    // The same library again; the binding asks for libonnxruntime.1.dylib.
    rmSync(join(target, builds, "darwin/arm64", `libonnxruntime.${version}.dylib`), { force: true })
    writeFileSync(join(target, "LICENSE"), onnxLicence)
  } finally {
    rmSync(published, { recursive: true, force: true })
  }
}

const readJson = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>
