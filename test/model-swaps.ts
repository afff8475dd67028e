/** Many models that do not fit into memory together: real processes are swapped, and nothing stays behind. */
import { readFileSync, readdirSync } from "node:fs"
import { expect } from "vitest"
import type { Model } from "../src/base/catalog.ts"
import { loadConfig } from "../src/base/config.ts"
import { systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { admitAny } from "../src/engine/engine.ts"
import { predicate } from "../src/engine/branch.ts"
import type { LocalEngines } from "../src/engine/local-engines.ts"
import { toModel } from "../src/main/catalog.ts"
import { openConfiguredEngines } from "../src/main/engines.ts"
import { ModelConfig } from "../src/base/config-models.ts"
import { randomModel } from "./models.ts"

const never = new AbortController().signal
const fitting = 3
const mebibyte = 1024 * 1024
const work = { organizationId: "o", evidence: "The parcel is late.", branches: [predicate("Is it late?")] }

/** The engines of a server with these settings. */
export function openEngines(settings: Record<string, string>): LocalEngines {
  const environment = {
    UMPIRE_ENGINE_THREADS: "1",
    UMPIRE_ENGINE_KV_MEMORY_MIB: "16",
    UMPIRE_ENGINE_CACHE_MEMORY_MIB: "0",
    ...settings,
  }
  return openConfiguredEngines(loadConfig(environment, "/"), systemClock, silentLog)
}

export async function swapped(index: number): Promise<Model> {
  return await toModel(ModelConfig.parse({ sku: `swapped-${index}`, file: randomModel("micro-short") }))
}

/** Swaps `swaps` times among `count` models; answers how long loads took, in milliseconds. */
export async function swapModels(count: number, swaps: number): Promise<readonly number[]> {
  const models = await Promise.all(Array.from({ length: count }, async (_, index) => await swapped(index)))
  const [first] = models
  if (!first) throw new Error("no models")
  const alone = openEngines({})
  await alone.load(first)
  const bytes = alone.report()[0]?.memory_bytes ?? 0
  await alone.close()
  expect(bytes).toBeGreaterThan(mebibyte)

  const budgetMib = Math.ceil((bytes * (fitting + 0.1)) / mebibyte)
  const engines = openEngines({ UMPIRE_ENGINE_MEMORY_BUDGET_MIB: String(budgetMib) })
  const expected = await ask(engines, first)
  const loadsMs: number[] = []
  const rssAfter: number[] = []
  for (let swap = 0; swap < swaps; swap++) {
    const model = models[(swap * 7 + 1) % count] ?? first
    // The same file answers the same, however often it was swapped.
    expect(await ask(engines, model)).toBe(expected)
    const report = engines.report()
    const here = report.filter(({ state }) => state === "loaded")
    expect(here.length).toBeLessThanOrEqual(fitting)
    await expect.poll(engineProcesses).toBeLessThanOrEqual(fitting)
    loadsMs.push(report.find((one) => one.model === model.sku)?.load_ms ?? Number.NaN)
    rssAfter.push(process.memoryUsage.rss())
  }
  const loads = engines.report().reduce((sum, one) => sum + one.loads, 0)
  expect(loads).toBeGreaterThanOrEqual(swaps)
  expect(engines.report().every(({ in_use }) => in_use === 0)).toBe(true)
  await engines.close()
  await expect.poll(engineProcesses).toBe(0)
  expectNoGrowth(rssAfter)
  return loadsMs
}

export async function ask(engines: LocalEngines, model: Model): Promise<number> {
  const { margins } = await engines.scorer(model).score(work, { signal: never, admit: admitAny })
  return margins[0] ?? Number.NaN
}

/** Of this process, which stands for the gateway; as Linux lists them. */
function engineProcesses(): number {
  const isChild = new RegExp(`^PPid:\\s+${process.pid}$`, "m")
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => isChild.test(readProcess(pid, "status")))
    .filter((pid) => readProcess(pid, "cmdline").includes("engine")).length
}

/** Empty where it has ended meanwhile. */
function readProcess(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}

/** Per swap far less than a connection's buffers; the first quarter warms up. */
const growthMibMax = 64

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length

function expectNoGrowth(rss: readonly number[]): void {
  const quarter = Math.floor(rss.length / 4)
  if (quarter < 1) return
  const growth = mean(rss.slice(-quarter)) - mean(rss.slice(quarter, 2 * quarter))
  expect(growth / mebibyte).toBeLessThan(growthMibMax)
}
