/** What this process says about itself: the report that `umpire status` prints. */
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { GatewayState } from "../contract/fleet-report.ts"
import type { Region } from "../base/regions.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import type { Router } from "../gateway/routing/router.ts"
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

const millisecondsPerSecond = 1_000

export function createStatus(needs: StatusNeeds): () => GatewayState {
  const startedMs = needs.clock.monotonicMs()
  return () => reportOf(needs, startedMs)
}

function reportOf(
  { router, engines, money, regions, config, state, clock }: StatusNeeds,
  startedMs: number,
): GatewayState {
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
