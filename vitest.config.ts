import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import LongestFirst from "./test/longest-first.ts"

export default defineConfig({
  resolve: { alias: { "fast-check": join(import.meta.dirname, "test", "seeded-fast-check.ts") } },
  test: {
    include: ["src/**/*.test.ts", "packages/**/*.test.ts", "test/**/*.test.ts", "console/src/**/*.test.ts"],
    exclude: ["**/*.long.test.ts", "**/node_modules/**"],
    reporters: ["default", "./test/summary-reporter.ts"],
    globalSetup: ["./test/global-setup.ts"],
    pool: "forks",
    // On two processors two more than they can run: many tests wait for a server, a browser or a deadline.
    maxWorkers: Math.min(4, availableParallelism() + 2),
    sequence: { sequencer: LongestFirst },
    testTimeout: 900_000,
    // On a busy machine a page draws later than the second that is the default.
    expect: { poll: { timeout: 600_000 } },
    // A hook may have to install the browser or the database first.
    hookTimeout: 900_000,
  },
})
