/** What the package removes after its installation: builds of its own packages, and nothing of anybody else's. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { beforeEach, expect, test } from "vitest"

const script = join(import.meta.dirname, "..", "scripts", "prune.mjs")
const { platform, arch } = process
const kept = `onnxruntime-node/bin/napi-v6/${platform}/${arch}/a.node`
const removable = [
  "onnxruntime-node/bin/napi-v6/other/x64/a.node",
  `onnxruntime-node/bin/napi-v6/${platform}/other/a.node`,
  "node-llama-cpp/llama/gitRelease.bundle",
  "@node-llama-cpp/linux-x64-cuda/bins/a.so",
]

let project = ""
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "umpire-prune-"))
})

const write = (path: string, text = ""): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function fill(modules: string): void {
  for (const file of [kept, ...removable]) write(join(modules, file))
  write(join(modules, "onnxruntime-node/package.json"), '{"name":"onnxruntime-node"}')
  const optionalDependencies = { "@node-llama-cpp/linux-x64-cuda": "1" }
  write(
    join(modules, "node-llama-cpp/package.json"),
    JSON.stringify({ name: "node-llama-cpp", optionalDependencies }),
  )
  write(join(modules, "@node-llama-cpp/linux-x64-cuda/package.json"), "{}")
}

/** Answers the files that are left. */
function prune(modules: string, umpire = join(modules, "umpire"), env: NodeJS.ProcessEnv = {}): string[] {
  const dependencies = { "onnxruntime-node": "1", "node-llama-cpp": "1" }
  write(join(umpire, "package.json"), JSON.stringify({ name: "umpire", dependencies }))
  const { status, stderr } = spawnSync(process.execPath, [script, umpire], { encoding: "utf8", env })
  expect([status, stderr]).toEqual([0, ""])
  expect(existsSync(join(modules, kept))).toBe(true)
  return removable.filter((file) => existsSync(join(modules, file)))
}

test("packages below the package, and beside it in a project that only asked for it, are pruned", () => {
  const umpire = join(project, "lib", "node_modules", "umpire")
  fill(join(umpire, "node_modules"))
  expect(prune(join(umpire, "node_modules"), umpire)).toEqual([])
  fill(join(project, "node_modules"))
  expect(prune(join(project, "node_modules"))).toEqual([])
  write(join(project, "package.json"), '{"dependencies":{"umpire":"1"}}')
  fill(join(project, "node_modules"))
  expect(prune(join(project, "node_modules"))).toEqual([])
})

test("what the project or another of its packages asks for stays whole", () => {
  const modules = join(project, "node_modules")
  fill(modules)
  write(join(project, "package.json"), '{"devDependencies":{"onnxruntime-node":"1","node-llama-cpp":"1"}}')
  expect(prune(modules)).toEqual(removable)
  write(join(project, "package.json"), "{}")
  const peerDependencies = { "onnxruntime-node": "1", "node-llama-cpp": "1" }
  write(join(modules, "@other/one/package.json"), JSON.stringify({ name: "@other/one", peerDependencies }))
  expect(prune(modules)).toEqual(removable)
})

test("a global installation leaves its neighbours alone, and what lies further up", () => {
  const global = join(project, "lib", "node_modules")
  fill(global)
  expect(prune(global, join(global, "umpire"), { npm_config_global: "true" })).toEqual(removable)
  write(join(project, "package.json"), "{}")
  fill(join(project, "node_modules"))
  expect(prune(join(project, "node_modules"), join(project, "packages", "umpire"))).toEqual(removable)
})

test("a package that is a link into a store stays whole", () => {
  const store = join(project, "store")
  fill(store)
  const modules = join(project, "node_modules")
  mkdirSync(modules)
  write(join(project, "package.json"), "{}")
  for (const name of ["onnxruntime-node", "node-llama-cpp", "@node-llama-cpp"])
    symlinkSync(join(store, name), join(modules, name))
  expect(prune(modules)).toEqual(removable)
})

test("without the packages, or without the folder, nothing fails", () => {
  const { status } = spawnSync(process.execPath, [script, join(project, "none")])
  expect(status).toBe(0)
})
