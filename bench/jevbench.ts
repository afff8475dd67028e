/**
 * How coherent the decisions are: the public harness JevBench (PyPI, 50 laws of one question in several forms), in a virtual
 * environment of its own, against a started server. Its cases stay in the package; they are neither kept here nor trained on.
 *
 * `npm run bench -- jevbench [--model=umpire-decide] [--suite=jevbench-mini]`
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "umpire-decide" },
    suite: { type: "string", default: "jevbench-mini" },
  },
})
const version = "0.1.0"
const folder = join(import.meta.dirname, "out", "jevbench")
const environment = join(folder, "environment")
const harness = join(environment, "bin", "jevbench")

if (!existsSync(harness)) {
  mkdirSync(folder, { recursive: true })
  run("python3", ["-m", "venv", environment])
  run(join(environment, "bin", "pip"), ["install", "--quiet", `jevbench==${version}`])
}
const server = await startServer({
  env: {
    UMPIRE_ENGINE_DECISION_MODEL: values.model,
    UMPIRE_ENGINE_THREADS: "2",
    UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000",
  },
})
try {
  const url = `${server.url}/v1/systemone`
  const asked = ["--url", url, "--model", "umpire-decide", "--name", values.model, "--suite", values.suite]
  const out = join(folder, `${values.model}.json`)
  // Of this run alone: without it every law asks again what others have asked, twice as many requests.
  const cache = mkdtempSync(join(folder, "cache-"))
  run(
    harness,
    ["eval", ...asked, "--api-key-env", "JEVBENCH_KEY", "--cache-dir", cache, "--out", out, "-v"],
    {
      JEVBENCH_KEY: server.key,
    },
  )
  rmSync(cache, { recursive: true })
} finally {
  await server.stop()
}

function run(program: string, flags: readonly string[], env: Record<string, string> = {}): void {
  const { status, error } = spawnSync(program, flags, { stdio: "inherit", env: { ...process.env, ...env } })
  if (error) throw error
  if (status !== 0) throw new Error(`${program} ended with ${status}`)
}
