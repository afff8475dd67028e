import { defineConfig, mergeConfig } from "vitest/config"
import base from "./vitest.config.ts"

/** The fault tests with their full counts; `npm test` holds a short form of each. */
export default mergeConfig(
  base,
  defineConfig({
    test: {
      include: ["src/**/*.long.test.ts", "test/**/*.long.test.ts"],
      exclude: ["**/node_modules/**"],
      maxWorkers: 1,
      testTimeout: 3_600_000,
    },
  }),
)
