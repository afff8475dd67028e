/**
 * Run by npm after the package is installed, on the package's own files: of the builds of ONNX Runtime that it brings, the one
 * of this platform stays. Plain JavaScript, because Node 20 runs it too.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"

const builds = new URL("../node_modules/onnxruntime-node/bin/napi-v6/", import.meta.url)

try {
  // Without a build for this platform all stay: the layout may have changed.
  if (existsSync(new URL(`${process.platform}/${process.arch}/`, builds))) {
    keepOnly(builds, process.platform)
    keepOnly(new URL(`${process.platform}/`, builds), process.arch)
  }
} catch (error) {
  // An installation that cannot be written to works all the same; it is only larger.
  process.stderr.write(`umpire: cannot remove the builds of other platforms: ${error.message}\n`)
}

function keepOnly(folder, name) {
  for (const other of readdirSync(folder).filter((entry) => entry !== name))
    rmSync(new URL(other, folder), { recursive: true, force: true })
}
