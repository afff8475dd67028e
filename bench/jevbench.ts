/**
 * How coherent the decisions are: the public harness JevBench (PyPI, 50 laws of one question in several forms), in a virtual
 * environment of its own, against a started server. Its cases stay in the package; they are neither kept here nor trained on.
 *
 * `npm run bench -- jevbench [--model=umpire-decide] [--otherwise=umpire-decide-multilingual] [--suite=jevbench-mini] [--relations=cross_lingual]`: with `--otherwise`
 * a choice by language is asked, English by the first model and everything else by the other.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { startServer } from "../test/server.ts"

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "umpire-decide" },
    otherwise: { type: "string" },
    suite: { type: "string", default: "jevbench-mini" },
    relations: { type: "string" },
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
const name = values.otherwise ? `${values.model}-or-${values.otherwise}` : values.model
// JSON is YAML.
const configuration = join(folder, "umpire.yaml")
writeFileSync(
  configuration,
  JSON.stringify({ models: values.otherwise ? [byLanguage(values.otherwise)] : [] }),
)
const server = await startServer({
  env: {
    UMPIRE_CONFIG: configuration,
    UMPIRE_ENGINE_DECISION_MODEL: values.model,
    UMPIRE_ENGINE_THREADS: "2",
    UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "10000000",
  },
})
try {
  const url = `${server.url}/v1/systemone`
  const model = values.otherwise ? "by-language" : "umpire-decide"
  const asked = ["--url", url, "--model", model, "--name", name, "--suite", values.suite]
  const some = values.relations ? ["--relations", values.relations] : []
  const out = join(folder, `${name}.json`)
  // Of this run alone: without it every law asks again what others have asked, twice as many requests.
  const cache = mkdtempSync(join(folder, "cache-"))
  run(
    harness,
    ["eval", ...asked, ...some, "--api-key-env", "JEVBENCH_KEY", "--cache-dir", cache, "--out", out, "-v"],
    {
      JEVBENCH_KEY: server.key,
    },
  )
  rmSync(cache, { recursive: true })
} finally {
  await server.stop()
}

function byLanguage(otherwise: string): object {
  const routes = [{ languages: ["en", "unknown"], model: "umpire-decide" }]
  return { sku: "by-language", language: { routes, otherwise } }
}

function run(program: string, flags: readonly string[], env: Record<string, string> = {}): void {
  const { status, error } = spawnSync(program, flags, { stdio: "inherit", env: { ...process.env, ...env } })
  if (error) throw error
  if (status !== 0) throw new Error(`${program} ended with ${status}`)
}
