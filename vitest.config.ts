import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig, type TestProjectConfiguration } from "vitest/config"
import LongestFirst from "./test/longest-first.ts"

const include = ["src/**/*.test.ts", "packages/**/*.test.ts", "test/**/*.test.ts", "console/src/**/*.test.ts"]
const exclude = ["**/*.long.test.ts", "**/node_modules/**"]

/**
 * Tests that start no process and leave nothing behind in theirs share the processes that run them: the modules that most of
 * them need are evaluated once, which is up to half of what such a file takes.
 */
const sharing = [
  "console/src/**/*.test.ts",
  "src/{base,contract,control,gateway,main,scoring}/**/*.test.ts",
  "test/platform-{errors,organization,sessions,sso}.test.ts",
  "test/{alerts,billing,identity-providers,webhooks}.test.ts",
]

const resolve = { alias: { "fast-check": join(import.meta.dirname, "test", "seeded-fast-check.ts") } }
const test = {
  pool: "forks",
  testTimeout: 120_000,
  // On a busy machine a page draws later than the second that is the default.
  expect: { poll: { timeout: 60_000 } },
  // Starts servers on a busy machine; hooks that may have to install a program first say so (test/run-folder.ts).
  hookTimeout: 120_000,
} as const

const project = (name: string, given: object): TestProjectConfiguration => ({
  resolve,
  test: { ...test, name, ...given },
})

/** For a run of other files. */
export const base = {
  resolve,
  test: {
    ...test,
    reporters: ["default", "./test/summary-reporter.ts"],
    globalSetup: ["./test/global-setup.ts"],
    // Three for each processor: most tests wait for a server, a browser or a deadline for more than half of their time.
    maxWorkers: Math.min(6, availableParallelism() * 3),
    sequence: { sequencer: LongestFirst },
  },
}

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      project("own process", { include, exclude: [...exclude, ...sharing] }),
      project("shared process", { include: sharing, exclude, isolate: false }),
    ],
  },
})
