/** The engines of this machine, as the configuration wants them: how much memory they may take, and how long they stay. */
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { type LocalEngines, openLocalEngines } from "../engine/local-engines.ts"
import { openGenerator } from "./inference.ts"
import { startEngine } from "./routing.ts"

const mebibyte = 1024 * 1024
const millisecondsPerSecond = 1_000

export function openConfiguredEngines(config: Config, clock: Clock, log: Log): LocalEngines {
  const { idle_unload_s, memory_budget_mib } = config.engine
  return openLocalEngines({
    startScorer: async (model) => await startEngine(config, model, log),
    openGenerator: (model) => openGenerator(config, model, log),
    memoryBytesMax: memory_budget_mib === undefined ? null : memory_budget_mib * mebibyte,
    idleMsMax: idle_unload_s === undefined ? null : idle_unload_s * millisecondsPerSecond,
    clock,
    log,
  })
}
