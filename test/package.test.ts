/** The npm package: what `npm run package` makes is installed into an empty folder, without the sources, and runs there. */
import { type SpawnSyncReturns, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import manifest from "../package.json" with { type: "json" }
import consoleManifest from "../console/package.json" with { type: "json" }
import { readLock, runtimePackages } from "../scripts/locked-packages.ts"
import { decisionModelFile } from "./models.ts"
import { type TestServer, bootstrapKey, startServer } from "./server.ts"

const root = join(import.meta.dirname, "..")
const installedBytesMax = 600_000_000
const firstStartKilobytesMax = 500_000

interface PackageManifest {
  readonly name: string
  readonly scripts?: Readonly<Record<string, string>>
}

/** Of docs/library.md; what it expects of the types is checked too. */
const libraryProgram = `
import { load } from "umpire"
import { load as loadInPage } from "umpire/browser"
type InPage = Awaited<ReturnType<typeof loadInPage>>
type Rerank = InPage["rerank"]
// @ts-expect-error -- there are no embeddings in a browser
type Embed = InPage["embed"]
console.log(typeof loadInPage)
const umpire = await load({ model: "umpire-decide-small" })
const { answers } = await umpire.decide({
  input: "The parcel arrived two weeks late and the box was crushed.",
  questions: [
    { type: "choice", name: "topic", instructions: "What is it about?",
      choices: [{ value: "delivery" }, { value: "billing" }] },
  ],
})
const topic: "delivery" | "billing" = answers.topic.choice
// @ts-expect-error -- no such option
const wrong: "returns" = answers.topic.choice
console.log(topic)
`

const multilingual = "umpire-decide-multilingual"
const advice = `npm install ${multilingual} where umpire is installed adds it`

/** Prints whether the model decides, or why it cannot be loaded. */
const multilingualProgram = `
import { load } from "umpire"
try {
  const umpire = await load({ model: "${multilingual}" })
  const questions = [{ type: "predicate", name: "refund", instructions: "Wird Geld zurück verlangt?" }]
  const { answers } = await umpire.decide({ input: "Ich möchte mein Geld zurück.", questions })
  console.log(typeof answers.refund.probability)
} catch (error) {
  console.log(error.message)
}
`

let folder = ""
const installed = (...path: string[]): string => join(folder, "node_modules", manifest.name, ...path)

const quickGzip = `--import=${join(import.meta.dirname, "programs", "quick-gzip.mjs")}`

const npmInstall = (tarball: string): void => {
  const flags = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
  run("npm", ["install", `./${tarball}`, ...flags], { cwd: folder })
}

const run = (
  command: string,
  args: readonly string[],
  { cwd, nodeOptions = "" }: { readonly cwd: string; readonly nodeOptions?: string },
): SpawnSyncReturns<string> => {
  const env = { ...process.env, ...(nodeOptions === "" ? {} : { NODE_OPTIONS: nodeOptions }) }
  const ran = spawnSync(command, args, { cwd, encoding: "utf8", env })
  expect([ran.status, `${ran.stderr}${ran.status ? ran.stdout : ""}`]).toEqual([0, expect.anything()])
  return ran
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "umpire-package-"))
  run(process.execPath, [join(root, "scripts", "build-package.ts"), folder], {
    cwd: root,
    nodeOptions: quickGzip,
  })
  npmInstall(`${manifest.name}-${manifest.version}.tgz`)
  // Packing and installing half a gigabyte takes minutes beside other tests.
}, 600_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the installed package", () => {
  test("answers the README's request", async () => {
    // Empty, so that the database is made from the dump in the package.
    const dataDirectory = join(folder, "data")
    const server = await startServer({ command: installed("bin", "umpire.js"), dataDirectory })
    if (process.platform === "linux") expect(peakKilobytes(server)).toBeLessThan(firstStartKilobytesMax)
    const request = /-d '(\{[\s\S]*?\})'/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1] ?? ""
    const response = await server.post("/v1/decisions", request)
    const { answers } = (await response.json()) as { answers: { name: string }[] }
    expect([response.status, answers.map(({ name }) => name)]).toEqual([200, ["refund", "topic", "anger"]])
    const page = await fetch(`${server.url}/`, { headers: { accept: "text/html" } })
    expect(await page.text()).toContain("<title>")
    const chat = await server.post("/v1/chat/completions", {
      model: "umpire-chat",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 2,
    })
    expect([chat.status, server.key]).toEqual([200, bootstrapKey])
    expect(await server.stop()).toBe(0)
  })

  test("has no sources, no tests, no development packages, and is not too large", () => {
    expect(existsSync(installed("src"))).toBe(false)
    const files = readdirSync(installed("dist"), { recursive: true, encoding: "utf8" })
    expect(files.filter((file) => /(?<!\.d)\.ts$|\.test\./.test(file))).toEqual([])
    const runtime = Object.keys(runtimePackages(readLock()))
    const names = Object.keys({ ...manifest.devDependencies, ...consoleManifest.dependencies })
    const strays = names.filter((name) => !runtime.includes(`node_modules/${name}`))
    const places = [join(folder, "node_modules"), installed("node_modules")]
    expect(strays.filter((name) => places.some((place) => existsSync(join(place, name))))).toEqual([])
    expect(sizeOf(join(folder, "node_modules"))).toBeLessThan(installedBytesMax)
  })

  test("has ONNX Runtime of every supported platform packed and keeps one, and runs no script of other packages", () => {
    const packed = run("tar", ["-tzf", join(folder, `${manifest.name}-${manifest.version}.tgz`)], {
      cwd: folder,
    }).stdout
    const builds = /(?<=onnxruntime-node\/bin\/napi-v6\/).*(?=\/onnxruntime_binding.node)/g
    expect(packed.match(builds)?.toSorted()).toEqual(["darwin/arm64", "linux/arm64", "linux/x64"])
    expect(packed).toContain("node_modules/onnxruntime-node/LICENSE")
    const kept = installed("node_modules", "onnxruntime-node", "bin", "napi-v6")
    expect(readdirSync(kept).flatMap((system) => readdirSync(join(kept, system)))).toEqual([process.arch])
    expect(scriptsOf(join(folder, "node_modules"))).toEqual([manifest.name])
  })

  test("tells its version, and runs only the commands that exist", () => {
    const umpire = installed("bin", "umpire.js")
    expect(run(process.execPath, [umpire, "--version"], { cwd: folder }).stdout).toBe(`${manifest.version}\n`)
    expect(run(process.execPath, [umpire, "--help"], { cwd: folder }).stdout).toContain("serve")
  })

  test("is a library: its types fit, and it decides without a server", () => {
    const program = join(folder, "program.mts")
    writeFileSync(program, libraryProgram)
    const flags = ["--ignoreConfig", "--noEmit", "--strict", "--target", "es2024", "--module", "nodenext"]
    run(join(root, "node_modules", ".bin", "tsc"), [...flags, "--types", "", program], { cwd: folder })
    expect(run(process.execPath, [program], { cwd: folder }).stdout).toBe("function\ndelivery\n")
    const folderOfPages = readdirSync(installed("console", "dist", "browser"))
    for (const name of ["umpire.js", "worker.js", "ort-wasm-simd-threaded.wasm.gz"])
      expect(folderOfPages).toContain(name)
  })

  test("a line of dist is the line of the source", () => {
    for (const file of ["main", "main/umpire", "store/pglite"])
      expect([file, linesOf(installed("dist", `${file}.js`))]).toEqual([
        file,
        linesOf(join(root, "src", `${file}.ts`)),
      ])
  })
})

describe("the model for many languages", () => {
  test("is not in the package, and is named with the command that installs it", () => {
    const tarball = join(folder, `${manifest.name}-${manifest.version}.tgz`)
    expect(run("tar", ["-tzf", tarball], { cwd: folder }).stdout).not.toContain(multilingual)
    expect(listed()).not.toContain(multilingual)
    expect(decided()).toBe(`Cannot load "${multilingual}": ${advice}\n`)
    const environment = { ...process.env, UMPIRE_ENGINE_DECISION_MODEL: multilingual }
    const list = [installed("bin", "umpire.js"), "models", "list"]
    const { status, stderr } = spawnSync(process.execPath, list, { env: environment, encoding: "utf8" })
    expect([status === 0, stderr]).toEqual([false, expect.stringContaining(advice)])
  })

  test("is found once its package is installed beside this one", () => {
    const copy = join(folder, "packed", multilingual)
    cpSync(join(root, "packages", multilingual), copy, { recursive: true })
    // Another encoder stands in for the file in a clone without it: finding it does not depend on what it holds.
    const file = join(copy, `${multilingual}.onnx`)
    if (!existsSync(file)) cpSync(decisionModelFile, file)
    run("npm", ["pack", copy, "--loglevel=error"], { cwd: folder, nodeOptions: quickGzip })
    npmInstall(`${multilingual}-${manifest.version}.tgz`)
    expect(listed()).toContain(multilingual)
    expect(decided()).toBe("number\n")
  })

  test("has its licence, its notice and nothing but the model", () => {
    const { stdout } = run("npm", ["pack", "-w", multilingual, "--dry-run", "--json"], { cwd: root })
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
    const names = files.map(({ path }) => path).filter((path) => path !== `${multilingual}.onnx`)
    expect(names.toSorted()).toEqual(["LICENSE", "NOTICE", "README.md", "package.json"])
  })
})

test("an older Node is told, or replaced by the one that clones run on", () => {
  const text = readFileSync(join(root, "bin", "newer-node.js"), "utf8")
  expect(text).toContain(`const version = "${consoleManifest.dependencies.node}"`)
  expect(manifest.engines.node).toBe(">=22.19")
  expect(text).toContain("Node 22.19 or newer")
})

test("packing leaves the installed packages of the clone as they are", () => {
  expect(existsSync(join(root, "node_modules", "onnxruntime-node", "LICENSE"))).toBe(false)
})

/** The models of the catalog, without a server. */
const listed = (): string[] => {
  const environment = { ...process.env, UMPIRE_DATA_DIR: join(folder, "no-data") }
  const list = [installed("bin", "umpire.js"), "models", "list", "--json"]
  const { stdout } = spawnSync(process.execPath, list, { cwd: folder, env: environment, encoding: "utf8" })
  return (JSON.parse(stdout) as { sku: string }[]).map(({ sku }) => sku)
}

/** What the program about the model for many languages prints. */
const decided = (): string => {
  const program = join(folder, "multilingual.mjs")
  writeFileSync(program, multilingualProgram)
  return run(process.execPath, [program], { cwd: folder }).stdout
}

/** The most memory that the main process had so far. */
const peakKilobytes = ({ process: { pid } }: TestServer): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

/** The packages that npm runs a script of when it installs them. */
function scriptsOf(modules: string): string[] {
  const files = readdirSync(modules, { recursive: true, encoding: "utf8" })
  return files
    .filter((file) => /(?:^|node_modules\/)(?:@[^/]+\/)?[^/]+\/package\.json$/.test(file))
    .map((file) => JSON.parse(readFileSync(join(modules, file), "utf8")) as PackageManifest)
    .filter(({ scripts = {} }) => ["preinstall", "install", "postinstall"].some((name) => name in scripts))
    .map(({ name }) => name)
    .toSorted()
}

const linesOf = (path: string): number => readFileSync(path, "utf8").split("\n").length

/** The bytes of all files, as they are, not as a file system rounds them up. */
function sizeOf(path: string): number {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .reduce((bytes, { parentPath, name }) => bytes + statSync(join(parentPath, name)).size, 0)
}
