/** Properties of the code itself: layers point one way, and every file says what it is for. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative, sep } from "node:path"
import { expect, test } from "vitest"

/** Each layer and the layers beneath it that it may import. */
const layers: Record<string, readonly string[]> = {
  contract: [],
  scoring: [],
  base: ["contract"],
  engine: ["contract", "scoring", "base"],
  store: ["contract", "base"],
  gateway: ["contract", "scoring", "base", "engine", "store"],
  control: ["contract", "scoring", "base", "store"],
  server: ["contract", "base"],
  library: ["contract", "scoring", "base", "engine", "gateway"],
  cli: ["contract", "scoring", "base"],
  main: ["contract", "scoring", "base", "engine", "store", "gateway", "control", "server", "cli"],
}

const root = join(import.meta.dirname, "..", "src")
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file))
const layerOf = (file: string): string => file.replace(/\.ts$/, "").split(sep)[0] ?? ""

test("every file stands in a layer", () => {
  const strays = files.filter((file) => !Object.hasOwn(layers, layerOf(file)))
  expect(strays).toEqual([])
})

test("a file imports only its own layer and those beneath it", () => {
  const strays = files.flatMap((file) =>
    relativeImports(file)
      .filter((target) => !mayImport(file, target))
      .map((target) => `${file} imports ${target}`),
  )
  expect(strays).toEqual([])
})

const folderOf = (file: string): string => file.split(sep)[1] ?? ""

/** A file that lies directly in the layer counts as a folder of its own. */
test("no two folders of the gateway import each other", () => {
  const imports = files
    .filter((file) => layerOf(file) === "gateway" && !file.endsWith(".test.ts"))
    .flatMap((file) => relativeImports(file).map((target) => [file, join(dirname(file), target)] as const))
    .filter(([file, target]) => layerOf(target) === "gateway" && folderOf(file) !== folderOf(target))
    .map(([file, target]) => `${folderOf(file)} ${folderOf(target)}`)
  const known = new Set(imports)
  const isMutual = (pair: string): boolean => known.has(pair.split(" ").toReversed().join(" "))
  expect([...known].filter(isMutual)).toEqual([])
})

test("every file says on top what it is for", () => {
  const sources = files.filter((file) => !file.endsWith(".test.ts"))
  expect(sources.filter((file) => !/^\/\*\*\s/.test(readFileSync(join(root, file), "utf8")))).toEqual([])
})

/** Names of others (of PostgreSQL, of ONNX) stand in comments without backquotes. */
test("a comment names only what exists", () => {
  const comments = [...programs("src"), ...programs("packages"), ...programs("console/src")]
  const folders = ["src", "packages", "console/src", "test", "bench", "scripts", "bin"]
  const words = new Set(folders.flatMap((folder) => wordsOf(programs(folder))))
  const strays = comments.flatMap((file) =>
    namesInComments(read(file))
      .filter((name) => !name.split(/[.-]/).every((part) => words.has(part)))
      .map((name) => `${file}: ${name}`),
  )
  expect(strays).toEqual([])
})

/** What the package exports and what a thread runs are used by their names. */
test("what a file exports, another one imports", () => {
  const folders = ["src", "packages", "console/src", "test", "bench", "scripts"]
  const imported = new Set(folders.flatMap((folder) => programs(folder).flatMap(importedNames)))
  const named = programs("src").flatMap((file) =>
    [...read(file).matchAll(/name: "(\w+)"/g)].map(([, name]) => name),
  )
  const threaded = new Set(named)
  const strays = programs("src")
    .filter((file) => !file.includes(".test.") && !file.startsWith(join("src", "library")))
    .flatMap((file) => {
      const text = read(file)
      return [...text.matchAll(/^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm)]
        .map(([, name = ""]) => name)
        .filter(
          (name) => !new RegExp(`task\\(import\\.meta\\.url, ${name}[,)]`).test(text) && !threaded.has(name),
        )
        .filter((name) => ![name, "*"].some((use) => imported.has(`${file} ${use}`)))
        .map((name) => `${file}: ${name}`)
    })
  expect(strays).toEqual([])
})

/** Of src without tests: what is left is older, mostly of the store and the engines; it may only become less. */
const longSignaturesMax = 133

test("functions take at most three positional parameters", () => {
  const rule = { "eslint/max-params": ["error", { max: 3 }] }
  const config = join(mkdtempSync(join(tmpdir(), "umpire-tidy-")), "oxlint.json")
  writeFileSync(config, JSON.stringify({ plugins: [], categories: { correctness: "off" }, rules: rule }))
  const flags = ["-c", config, "--format", "unix", "--ignore-pattern", "*.test.ts", root]
  const { stdout } = spawnSync(join(top, "node_modules", ".bin", "oxlint"), flags, { encoding: "utf8" })
  const found = stdout.match(/has too many parameters/g) ?? []
  expect(found.length).toBeGreaterThan(0)
  expect(found.length).toBeLessThanOrEqual(longSignaturesMax)
})

test("a comment says who: the client, a gateway, a user", () => {
  const folders = ["src", "packages", "console/src", "test", "bench", "scripts"]
  const vague = folders.flatMap(programs).filter((file) => {
    const comments = read(file).match(comment) ?? []
    return comments.some((words) => /\b(?:nobody|whoever)\b/i.test(words.replaceAll(/"[^"]*"/g, "")))
  })
  expect(vague).toEqual([])
})

const top = join(import.meta.dirname, "..")
const read = (file: string): string => readFileSync(join(top, file), "utf8")
const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm

function programs(folder: string): string[] {
  const found = readdirSync(join(top, folder), { recursive: true, encoding: "utf8" })
  return found.filter((file) => /\.(?:tsx?|m?js|sql)$/.test(file)).map((file) => join(folder, file))
}

/** Of code, not of comments: a name that only comments know does not exist. Files count by their names. */
function wordsOf(sources: readonly string[]): string[] {
  return sources.flatMap((file) => [
    ...(read(file)
      .replaceAll(comment, "")
      .match(/[\w$]+/g) ?? []),
    ...file.split(/[/.]/),
  ])
}

/** In backquotes or in a link: `name`, `name()`, `object.name`, and the names of files. */
function namesInComments(text: string): string[] {
  return [...text.matchAll(comment)].flatMap(([words]) =>
    [...words.matchAll(/(?:`|\{@link )([\w$-]+(?:[./][\w$-]+)*)(?:\(\))?[`}]/g)].map(([, name = ""]) =>
      name.replaceAll("/", "."),
    ),
  )
}

/** Only tests reach out of src. */
function mayImport(file: string, target: string): boolean {
  const other = layerOf(relative(root, join(root, dirname(file), target)))
  if (other === ".." || other === "") return file.endsWith(".test.ts")
  return other === layerOf(file) || (layers[layerOf(file)] ?? []).includes(other)
}

function relativeImports(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8")
  return [...text.matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)].map((match) => match[1] ?? "")
}

/** As `src/base/ids.ts createIds`, of both ways to import; `*` for a file that is imported as a whole. */
function importedNames(file: string): string[] {
  const text = read(file)
  const named = [
    ...text.matchAll(/(?:import|export)(?: type)? (?:(\* as \w+)|\{([^}]*)\}) from "(\.[^"]+)"/g),
  ]
  const whole = [...text.matchAll(/import\("(\.[^"]+)"\)/g)].map(
    ([, target = ""]) => `${join(dirname(file), target)} *`,
  )
  const names = named.flatMap(([, all, list = "", target = ""]) =>
    (all
      ? ["*"]
      : list.split(",").map((name) =>
          name
            .trim()
            .replace(/^type /, "")
            .replace(/ as .*/, ""),
        )
    ).map((name) => `${join(dirname(file), target)} ${name}`),
  )
  return [...whole, ...names]
}
