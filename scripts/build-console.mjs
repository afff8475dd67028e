/** Builds the console when its sources have changed since the last time; plain JavaScript, because Node 20 runs it too. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const stampIn = (folder) => join(folder, "console", "dist", ".built-from")

export function buildConsole() {
  if (isBuilt(root)) return
  process.stderr.write("Building the console (once)...\n")
  // The Node that npm brings: the machine's own may be too old for Vite.
  const node = join(root, "node_modules", ".bin", "node")
  const vite = join(root, "node_modules", "vite", "bin", "vite.js")
  // The second builds into what the first has made.
  for (const config of ["vite.config.ts", "browser.vite.config.ts"]) {
    const result = spawnSync(
      existsSync(node) ? node : process.execPath,
      [vite, "build", "console", "--config", join("console", config), "--logLevel", "warn"],
      { cwd: root, stdio: ["ignore", 2, 2] },
    )
    if (result.status !== 0) throw new Error("Cannot build the console: see what Vite says above")
  }
  writeFileSync(stampIn(root), hashOfSources(root))
}

/** Whether what was built was built from the sources as they are. */
export function isBuilt(folder) {
  try {
    return readFileSync(stampIn(folder), "utf8") === hashOfSources(folder)
  } catch {
    // Never built, or a file is gone that it was built from.
    return false
  }
}

/** What Vite says it built from, wherever that lies; what it copies; and what it builds with. */
function hashOfSources(folder) {
  const dist = join(folder, "console", "dist")
  const modules = [dist, join(dist, "browser")].flatMap((made) =>
    readFileSync(join(made, ".sources"), "utf8").split("\n"),
  )
  const copied = readdirSync(join(folder, "console", "public")).map((name) => `console/public/${name}`)
  const settings = [
    ...["vite.config.ts", "browser.vite.config.ts"].map((name) => `console/${name}`),
    "package-lock.json",
  ]
  const hash = createHash("sha256")
  for (const file of [...new Set(modules), ...copied.toSorted(), ...settings])
    hash.update(`${file}\n`).update(readFileSync(join(folder, file)))
  return hash.digest("hex")
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildConsole()
