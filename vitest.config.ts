import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig, type TestProjectConfiguration } from "vitest/config"
import LongestFirst from "./test/longest-first.ts"

const include = ["src/**/*.test.ts", "packages/**/*.test.ts", "test/**/*.test.ts", "console/src/**/*.test.ts"]
const exclude = ["**/*.long.test.ts", "**/node_modules/**"]

/**
 * Tests that change the process they run in or measure it, load native engines into it, or take long, have one of their own. The
 * others share processes: what most of them need is evaluated once, which is about half of what such a file takes.
 */
const alone = [
  "src/cli/{gpu,run-until-stopped,service,stop-signal}.test.ts",
  // Their clocks stand still, and what another leaves behind would move them.
  "src/server/**/*.test.ts",
  "src/engine/{engine-client,engine-service}.test.ts",
  "src/engine/encoder/{graph,model-parts}.test.ts",
  "src/engine/generate/{gather,local-engine,scoring}.test.ts",
  "src/store/{cluster-dump,directory-lock,fresh-cache,pglite,postgres,sql}.test.ts",
  "src/store/events/**/*.test.ts",
  "test/{analytics,console,encoder,engine,inference,label,minilm,model,settings}*.test.ts",
  "test/{abuse,backup,batch-gateways,chaos,chart-run,content-kill,docs-examples,end-with-npm}.test.ts",
  "test/{library,newer-node,openapi-contract,overload,overshoot,package,peer,platform-access}.test.ts",
  "test/{identity-oidc,schema-drawing,sql-decide,start,upgrade}.test.ts",
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
      project("own process", { include: alone, exclude }),
      project("shared process", { include, exclude: [...exclude, ...alone], isolate: false }),
    ],
  },
})
