import { defineConfig } from "vitest/config"
import base from "./vitest.config.ts"

/** The fault tests with their full counts; `npm test` holds a short form of each. */
export default defineConfig({
  ...base,
  test: {
    // Not merged: the lists of the short form would be added to these, and it leaves the long tests out.
    ...base.test,
    include: ["src/**/*.long.test.ts", "test/**/*.long.test.ts"],
    exclude: ["**/node_modules/**"],
    maxWorkers: 1,
    testTimeout: 3_600_000,
  },
})
