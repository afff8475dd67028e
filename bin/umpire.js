#!/usr/bin/env node
/**
 * The `umpire` command. A clone runs the sources, an installed package their `dist/`. What was compiled once is kept,
 * which makes a start about twice as fast.
 */
import { existsSync, readFileSync } from "node:fs"
import module from "node:module"
import { fileURLToPath } from "node:url"
import { endWithNpm } from "./end-with-npm.js"

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const argv = process.argv.slice(2)

endWithNpm()
if (argv[0] === "--version" || argv[0] === "-v") {
  process.stdout.write(`${JSON.parse(readFileSync(at("package.json"), "utf8")).version}\n`)
} else if (isOld(process.versions.node)) {
  const { runWithNewerNode } = await import("./newer-node.js")
  process.exitCode = await runWithNewerNode(fileURLToPath(import.meta.url), argv)
} else {
  const kept = at("node_modules/.cache/umpire/compiled")
  module.enableCompileCache(kept)
  // Inherited by the engines' processes, which run the same code.
  process.env.NODE_COMPILE_CACHE ??= kept
  const entry = existsSync(at("src/main.ts")) ? "../src/main.ts" : "../dist/main.js"
  const { main } = await import(entry)
  process.exitCode = await main(argv)
}

/** Older than `engines` in package.json says. */
function isOld(version) {
  const [major, minor] = version.split(".").map(Number)
  return major < 22 || (major === 22 && minor < 19)
}
