/** When the console is built again: after a change in anything that it is made from, and at no other time. */
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import { buildConsole, isBuilt } from "../scripts/build-console.mjs"

const root = join(import.meta.dirname, "..")
const folder = mkdtempSync(join(tmpdir(), "umpire-built-"))
let sources: string[] = []

beforeAll(() => {
  buildConsole()
  const made = ["dist", "dist/browser"].map((name) => join(root, "console", name, ".sources"))
  sources = [...new Set(made.flatMap((file) => readFileSync(file, "utf8").split("\n")))]
})
beforeEach(() => {
  const settings = ["console/vite.config.ts", "console/browser.vite.config.ts", "package-lock.json"]
  const parts = ["console/dist", "console/public", ...settings]
  for (const part of [...sources, ...parts]) {
    mkdirSync(dirname(join(folder, part)), { recursive: true })
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test("what pages load imports nothing of Node", () => {
  const own = sources.filter((file) => !file.startsWith("node_modules/"))
  expect(own.length).toBeGreaterThan(100)
  expect(own.filter((file) => /"node:/.test(readFileSync(join(root, file), "utf8")))).toEqual([])
})

test("what was built from the sources as they are is not built again", () => {
  expect(isBuilt(folder)).toBe(true)
})

test.each([
  "console/src/main.tsx",
  "console/src/styles.css",
  "console/index.html",
  "console/public/theme.js",
  "console/vite.config.ts",
  "console/browser.vite.config.ts",
  "src/library/browser-worker.ts",
  "src/contract/table.ts",
  "src/scoring/evaluation.ts",
  "src/gateway/routing/plan.ts",
  "package-lock.json",
])("a change in %s is seen", (file) => {
  appendFileSync(join(folder, file), "\n")
  expect(isBuilt(folder)).toBe(false)
})

test("a source that is gone, a new public file, and a page that was never built are seen", () => {
  rmSync(join(folder, "src/scoring/evaluation.ts"))
  expect(isBuilt(folder)).toBe(false)
  cpSync(join(root, "src/scoring/evaluation.ts"), join(folder, "src/scoring/evaluation.ts"))
  expect(isBuilt(folder)).toBe(true)
  writeFileSync(join(folder, "console/public/new.svg"), "")
  expect(isBuilt(folder)).toBe(false)
  rmSync(join(folder, "console/public/new.svg"))
  expect(isBuilt(folder)).toBe(true)
  rmSync(join(folder, "console/dist"), { recursive: true })
  expect(isBuilt(folder)).toBe(false)
})

test("no package of others, and no test, is a source", () => {
  expect(sources.filter((file) => /node_modules|\.test\.|^\.\./.test(file))).toEqual([])
})
