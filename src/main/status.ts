/** What this process says about itself: the metrics, and the report that `umpire status` prints. */
import type { Clock } from "../base/clock.ts"
import { type Labels, Metrics, type Sample } from "../base/metrics.ts"
import type { Region } from "../base/regions.ts"
import type { ModelReport, Router } from "../gateway/routing/router.ts"
import type { WorkerReport } from "../gateway/routing/worker.ts"
import type { Money } from "./money.ts"
import { version } from "./version.ts"

interface StatusNeeds {
  readonly router: Pick<Router, "report">
  readonly money: Pick<Money, "report">
  readonly regions: readonly Region[]
  readonly gatewayRegion: string
  readonly state: { readonly stopping: boolean; readonly url: string }
  readonly clock: Clock
}

interface StatusReport {
  readonly version: string
  readonly url: string
  readonly state: "serving" | "stopping"
  readonly region: string
  readonly uptime_s: number
  readonly memory_bytes: number
  readonly regions: readonly Region[]
  readonly models: readonly ModelReport[]
  readonly gateway_id: string
  readonly journal: { readonly bytes: number; readonly lag_ms: number }
  readonly leases: readonly { readonly billing_account_id: string; readonly held_ticks: string }[]
}

interface Status {
  readonly metrics: Metrics
  report(): StatusReport
}

const millisecondsPerSecond = 1_000
const breakerLevels = { closed: 0, half_open: 1, open: 2 } as const

export function createStatus(needs: StatusNeeds): Status {
  const metrics = new Metrics()
  const startedMs = needs.clock.monotonicMs()
  addWorkerMetrics(metrics, needs.router)
  addMoneyMetrics(metrics, needs.money)
  metrics.gauge("umpire_process_resident_memory_bytes", "Memory of the gateway process.", () => [
    { labels: {}, value: process.memoryUsage.rss() },
  ])
  return { metrics, report: () => reportOf(needs, startedMs) }
}

function addWorkerMetrics(metrics: Metrics, router: Pick<Router, "report">): void {
  const each = (measure: (worker: WorkerReport) => number | null) => (): Sample[] =>
    router.report().flatMap(({ model, workers }) =>
      workers.flatMap((worker) => {
        const value = measure(worker)
        const labels: Labels = { model, region: worker.region, worker: worker.id }
        return value === null ? [] : [{ labels, value }]
      }),
    )
  const gauges: [string, string, (worker: WorkerReport) => number | null][] = [
    ["healthy", "1 when health checks pass.", ({ healthy }) => Number(healthy)],
    ["breaker", "0 closed, 1 half open, 2 open.", ({ breaker }) => breakerLevels[breaker]],
    ["running", "Requests that a worker works on.", ({ running }) => running],
    ["waiting", "Requests that wait for a worker.", ({ waiting }) => waiting],
    ["outstanding_tokens", "Tokens of all of these.", ({ outstanding_tokens }) => outstanding_tokens],
    ["latency_ms", "Time of a health check, smoothed.", ({ latency_ms }) => latency_ms],
    ["failures", "Tries that failed because of the worker, since the start.", ({ failures }) => failures],
  ]
  for (const [name, help, measure] of gauges) metrics.gauge(`umpire_worker_${name}`, help, each(measure))
}

function addMoneyMetrics(metrics: Metrics, money: Pick<Money, "report">): void {
  const one = (measure: (report: ReturnType<Money["report"]>) => number) => (): Sample[] => [
    { labels: {}, value: measure(money.report()) },
  ]
  metrics.gauge(
    "umpire_journal_bytes",
    "Size of the journal.",
    one(({ journalBytes }) => journalBytes),
  )
  metrics.gauge(
    "umpire_journal_lag_ms",
    "How long usage has been waiting to get into the ledger.",
    one(({ lagMs }) => lagMs),
  )
  metrics.gauge(
    "umpire_leases",
    "Billing accounts that this gateway holds credit of.",
    one(({ leases }) => leases.length),
  )
  metrics.gauge(
    "umpire_leases_held_ticks",
    "Credit that this gateway holds, in ticks of 1e-10 USD.",
    one(({ leases }) => leases.reduce((sum, { heldTicks }) => sum + Number(heldTicks), 0)),
  )
}

function reportOf(
  { router, money, regions, gatewayRegion, state, clock }: StatusNeeds,
  startedMs: number,
): StatusReport {
  const { gatewayId, journalBytes, lagMs, leases } = money.report()
  return {
    version,
    url: state.url,
    state: state.stopping ? "stopping" : "serving",
    region: gatewayRegion,
    uptime_s: Math.round((clock.monotonicMs() - startedMs) / millisecondsPerSecond),
    memory_bytes: process.memoryUsage.rss(),
    regions,
    models: router.report(),
    gateway_id: gatewayId,
    journal: { bytes: journalBytes, lag_ms: lagMs },
    leases: leases.map(({ accountId, heldTicks }) => ({
      billing_account_id: accountId,
      held_ticks: String(heldTicks),
    })),
  }
}
