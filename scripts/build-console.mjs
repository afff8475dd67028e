/** Builds the console when its sources have changed since the last time; plain JavaScript, because Node 20 runs it too. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const stamp = join(root, "console", "dist", ".built-from")

export function buildConsole() {
  const wanted = hashOfSources()
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  process.stderr.write("Building the console (once)...\n")
  // The Node that npm brings: the machine's own may be too old for Vite.
  const node = join(root, "node_modules", ".bin", "node")
  const vite = join(root, "node_modules", "vite", "bin", "vite.js")
  const result = spawnSync(
    existsSync(node) ? node : process.execPath,
    [vite, "build", "console", "--logLevel", "warn"],
    { cwd: root, stdio: ["ignore", 2, 2] },
  )
  if (result.status !== 0) throw new Error("Cannot build the console: see what Vite says above")
  writeFileSync(stamp, wanted)
}

/** The console's own sources, what it shares with the server, and the packages it is built with. */
function hashOfSources() {
  const hash = createHash("sha256")
  for (const folder of ["console", "src/contract", "src/scoring"])
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).toSorted()) {
      if (file.startsWith("dist") || !/\.(?:tsx?|css|html|js|svg)$/.test(file) || file.endsWith(".test.ts"))
        continue
      hash.update(file).update(readFileSync(join(root, folder, file)))
    }
  return hash.update(readFileSync(join(root, "package-lock.json"))).digest("hex")
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildConsole()
