/**
 * Installs what package-lock.json names and builds the console, unless that is already done; plain JavaScript, because
 * Node 20 runs it too. With --omit=dev, what only development needs is left out.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { buildConsole } from "./build-console.mjs"

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..")
const stamp = join(root, "node_modules", ".umpire-installed")
const omitDev = process.argv.includes("--omit=dev")
const lockHash = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex")

/** Everything includes what a server needs: a development installation is left alone. */
const sufficient = omitDev ? [lockHash, `${lockHash} omit=dev`] : [lockHash]

if (!sufficient.includes(installed())) {
  const npm = process.env.npm_execpath
  // Not `npm ci`, which would remove what is there and install everything again.
  // Quiet about packages that would like a newer Node than the machine's: they run on the one that npm brings.
  const flags = [
    "install",
    "--no-save",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    ...(omitDev ? ["--omit=dev"] : []),
  ]
  const [command, ...rest] = npm ? [process.execPath, npm, ...flags] : ["npm", ...flags]
  process.stderr.write("Installing the packages that Umpire needs (once)...\n")
  // ONNX Runtime's own script would fetch GPU builds on Linux x64 from a second registry; decisions run on the CPU.
  const env = { ...process.env, ONNXRUNTIME_NODE_INSTALL: "skip" }
  const result = spawnSync(command, rest, { cwd: root, stdio: ["ignore", 2, 2], env })
  if (result.status !== 0) process.exit(result.status ?? 1)
  writeFileSync(stamp, omitDev ? `${lockHash} omit=dev` : lockHash)
}
buildConsole()

function installed() {
  try {
    return readFileSync(stamp, "utf8")
  } catch {
    return null
  }
}
