import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "console/src/**/*.test.ts"],
    exclude: ["**/*.long.test.ts", "**/node_modules/**"],
    reporters: ["default", "./test/summary-reporter.ts"],
    globalSetup: ["./test/global-setup.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    // On a busy machine a page draws later than the second that is the default.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 120_000,
  },
})
