/** What this process says about itself: the report that `umpire status` prints. */
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { EngineReport } from "../base/fleet-report.ts"
import type { Region } from "../base/regions.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import type { ModelReport, Router } from "../gateway/routing/router.ts"
import type { Money } from "./money.ts"
import { version } from "./package-files.ts"

interface StatusNeeds {
  readonly router: Pick<Router, "report">
  readonly engines: Pick<LocalEngines, "report">
  readonly money: Pick<Money, "report">
  readonly regions: readonly Region[]
  readonly config: Pick<Config, "gateway">
  readonly state: { readonly stopping: boolean; readonly url: string }
  readonly clock: Clock
}

export interface StatusReport {
  readonly version: string
  readonly url: string
  readonly state: "serving" | "stopping"
  readonly region: string
  readonly uptime_s: number
  readonly memory_bytes: number
  readonly regions: readonly Region[]
  readonly models: readonly ModelReport[]
  /** The models in this machine's memory. */
  readonly engines: readonly EngineReport[]
  readonly gateway_id: string
  readonly journal: { readonly bytes: number; readonly lag_ms: number }
  readonly leases: readonly { readonly billing_account_id: string; readonly held_ticks: string }[]
}

const millisecondsPerSecond = 1_000

export function createStatus(needs: StatusNeeds): () => StatusReport {
  const startedMs = needs.clock.monotonicMs()
  return () => reportOf(needs, startedMs)
}

function reportOf(
  { router, engines, money, regions, config, state, clock }: StatusNeeds,
  startedMs: number,
): StatusReport {
  const { gatewayId, journalBytes, lagMs, leases } = money.report()
  return {
    version,
    url: state.url,
    state: state.stopping ? "stopping" : "serving",
    region: config.gateway.region ?? regions[0]?.id ?? "",
    uptime_s: Math.round((clock.monotonicMs() - startedMs) / millisecondsPerSecond),
    memory_bytes: process.memoryUsage.rss(),
    regions,
    models: router.report(),
    engines: engines.report(),
    gateway_id: gatewayId,
    journal: { bytes: journalBytes, lag_ms: lagMs },
    leases: leases.map(({ accountId, heldTicks }) => ({
      billing_account_id: accountId,
      held_ticks: String(heldTicks),
    })),
  }
}
