import { globSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { defineConfig } from "vitest/config"
import { base } from "./vitest.config.ts"

const seed = process.env["UMPIRE_TEST_SEED"] ?? String(Date.now() % 2 ** 31)
process.stdout.write(`Cases are drawn with UMPIRE_TEST_SEED=${seed}\n`)

/** The tests that draw their cases, by themselves or by what they share; `npm test` gives them the same ones each time. */
function drawingTests(): string[] {
  const imports = new Map(
    globSync(["src/**/*.test.ts", "packages/**/*.ts", "console/src/**/*.test.ts", "test/**/*.ts"], {
      cwd: import.meta.dirname,
    }).map((path) => {
      const text = readFileSync(join(import.meta.dirname, path), "utf8")
      return [path, [...text.matchAll(/from "([^"]+)"/g)].map(([, name = ""]) => basename(name))]
    }),
  )
  const drawing = new Set(["fast-check"])
  let before = 0
  while (drawing.size > before) {
    before = drawing.size
    for (const [path, names] of imports)
      if (
        /^(?:test|packages)/.test(path) &&
        !path.endsWith(".test.ts") &&
        names.some((name) => drawing.has(name))
      )
        drawing.add(basename(path))
  }
  return [...imports].flatMap(([path, names]) =>
    path.endsWith(".test.ts") && names.some((name) => drawing.has(name)) ? [path] : [],
  )
}

/** The fault tests with their full counts, of which `npm test` holds short forms, and new cases where cases are drawn. */
export default defineConfig({
  ...base,
  test: {
    // Not merged: the lists of the short form would be added to these, and it leaves the long tests out.
    ...base.test,
    include: [
      "src/**/*.long.test.ts",
      "packages/**/*.long.test.ts",
      "test/**/*.long.test.ts",
      ...drawingTests(),
    ],
    env: {
      UMPIRE_TEST_RUNS: "60",
      UMPIRE_TEST_HISTORIES: "60",
      UMPIRE_TEST_SCHEMAS: "100",
      UMPIRE_TEST_QUESTIONS: "60",
      UMPIRE_TEST_SEED: seed,
    },
    exclude: ["**/node_modules/**"],
    maxWorkers: 1,
    testTimeout: 3_600_000,
  },
})
