/** What Prometheus is told of this process: its workers, engines, leases, journal and resources. Reads levels only when asked. */
import { performance } from "node:perf_hooks"
import { bringsBearer } from "../base/bearer-value.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { EngineReport } from "../contract/fleet-report.ts"
import type { Log } from "../base/log.ts"
import type { Labels, Metrics, Sample } from "../base/telemetry.ts"
import { dollarsOf } from "../base/money.ts"
import { Document, type Handler } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { largestReadBytes } from "../contract/read-size.ts"
import type { getMetrics } from "../contract/service.ts"
import type { EngineStats } from "../engine/engine.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import type { Router } from "../gateway/routing/router.ts"
import type { WorkerReport } from "../gateway/routing/worker.ts"
import type { ByteBudget } from "../server/byte-budget.ts"
import { openMetricsPort, type ReadMetrics } from "../server/port.ts"
import type { DiskSpace } from "../store/disk-space.ts"
import type { Money } from "./money.ts"
import { version } from "./package-files.ts"

const millisecondsPerSecond = 1_000
const microsecondsPerSecond = 1_000_000
const breakerLevels = { closed: 0, half_open: 1, open: 2 } as const

export function addWorkerMetrics(metrics: Metrics, router: Pick<Router, "report">): void {
  const each = (measure: (worker: WorkerReport) => number | null) => (): Sample[] =>
    router.report().flatMap(({ model, workers }) =>
      workers.flatMap((worker) => {
        const value = measure(worker)
        return value === null ? [] : [{ labels: labelsOf(model, worker), value }]
      }),
    )
  const gauges: [string, string, (worker: WorkerReport) => number | null][] = [
    ["healthy", "1 when health checks pass.", ({ healthy }) => Number(healthy)],
    ["breaker_state", "0 closed, 1 half open, 2 open.", ({ breaker }) => breakerLevels[breaker]],
    ["running_requests", "Requests that a worker works on.", ({ running }) => running],
    ["waiting_requests", "Requests that wait for a worker.", ({ waiting }) => waiting],
    ["outstanding_tokens", "Tokens of all of these.", ({ outstanding_tokens }) => outstanding_tokens],
    [
      "health_check_duration_seconds",
      "Time of a health check, smoothed.",
      ({ latency_ms }) => (latency_ms === null ? null : latency_ms / millisecondsPerSecond),
    ],
  ]
  for (const [name, help, measure] of gauges) metrics.gauge(`umpire_worker_${name}`, help, each(measure))
  metrics.total(
    "umpire_worker_failures_total",
    "Attempts that failed because of the worker.",
    each(({ failures }) => failures),
  )
  metrics.total(
    "umpire_worker_attempts_total",
    "Attempts at a worker, by result: success, the code of the error, or abandoned.",
    () =>
      router.report().flatMap(({ model, workers }) =>
        workers.flatMap((worker) =>
          Object.entries(worker.attempts).map(([result, value]) => ({
            labels: { ...labelsOf(model, worker), result },
            value,
          })),
        ),
      ),
  )
}

const labelsOf = (model: string, { region, id }: WorkerReport): Labels => ({ model, region, worker: id })

/** Of the models that are loaded in this machine. */
export function addEngineMetrics(
  metrics: Metrics,
  engines: Pick<LocalEngines, "loadedScorers" | "report">,
): void {
  const each = (measure: (stats: EngineStats & { readonly restarts: number }) => number) => (): Sample[] =>
    [...engines.loadedScorers()].flatMap(([model, engine]) => {
      const stats = engine.stats?.()
      return stats ? [{ labels: { model }, value: measure(stats) }] : []
    })
  const totals: [string, string, (stats: EngineStats & { readonly restarts: number }) => number][] = [
    ["runs", "Runs of the network, each of one batch.", ({ runs }) => runs],
    ["batch_tokens", "Tokens that batches held.", ({ tokensRun }) => tokensRun],
    ["batch_capacity_tokens", "Tokens that batches had room for.", ({ tokensRunMax }) => tokensRunMax],
    ["reused_tokens", "Tokens of evidence that were found evaluated.", ({ tokensReused }) => tokensReused],
    ["cache_hits", "Requests that found their evidence evaluated.", ({ cacheHits }) => cacheHits],
    ["cache_misses", "Requests that did not.", ({ cacheMisses }) => cacheMisses],
    ["restarts", "Times that the process died and was started again.", ({ restarts }) => restarts],
  ]
  for (const [name, help, measure] of totals)
    metrics.total(`umpire_engine_${name}_total`, help, each(measure))
  metrics.gauge(
    "umpire_engine_cache_bytes",
    "Memory of evaluated evidence.",
    each(({ cacheBytes }) => cacheBytes),
  )
  addResidencyMetrics(metrics, engines)
}

function addResidencyMetrics(metrics: Metrics, engines: Pick<LocalEngines, "report">): void {
  const each = (measure: (report: EngineReport) => number) => (): Sample[] =>
    engines
      .report()
      .map((report) => ({ labels: { model: report.model, purpose: report.purpose }, value: measure(report) }))
  metrics.total(
    "umpire_engine_loads_total",
    "Times that the model was loaded into memory.",
    each(({ loads }) => loads),
  )
  metrics.gauge(
    "umpire_engine_memory_bytes",
    "Memory of the model's process; 0 while it is not loaded.",
    each(({ memory_bytes }) => memory_bytes),
  )
}

export function addMoneyMetrics(metrics: Metrics, money: Pick<Money, "report">): void {
  const gauges: [string, string, (report: ReturnType<Money["report"]>) => number][] = [
    ["journal_bytes", "Size of the journal.", ({ journalBytes }) => journalBytes],
    [
      "journal_lag_seconds",
      "How long usage has been waiting to get into the ledger.",
      ({ lagMs }) => lagMs / millisecondsPerSecond,
    ],
    ["leases", "Billing accounts that this gateway holds credit of.", ({ leases }) => leases.length],
    [
      "leases_held_dollars",
      "Credit that this gateway holds, in USD.",
      ({ leases }) => leases.reduce((sum, { heldTicks }) => sum + dollarsOf(heldTicks), 0),
    ],
    [
      "lease_renewal_age_seconds",
      "How long ago the store last renewed what this gateway holds.",
      ({ renewalAgeMs }) => renewalAgeMs / millisecondsPerSecond,
    ],
  ]
  for (const [name, help, measure] of gauges)
    metrics.gauge(
      `umpire_${name}`,
      help,
      one(() => measure(money.report())),
    )
}

/** Anyone may ask as often as they like, and a long text takes its time to write. */
const rewrittenMs = 1_000

/** The text, written at most once a second; throws where the bearer value is not `metrics.token`. */
export function metricsReader({ token }: Config["metrics"], metrics: Metrics, clock: Clock): ReadMetrics {
  let written = { text: Buffer.alloc(0), atMs: -Infinity }
  return (authorization) => {
    if (token !== undefined && !bringsBearer(authorization, token)) throw refusal(authorization)
    const nowMs = clock.monotonicMs()
    if (nowMs - written.atMs >= rewrittenMs) written = { text: Buffer.from(metrics.text()), atMs: nowMs }
    return written.text
  }
}

const refusal = (authorization: string | null): Fault =>
  authorization === null
    ? new Fault("missing_credentials", "Cannot read the metrics: send Authorization: Bearer <metrics.token>")
    : new Fault("invalid_credentials", "Cannot read the metrics: the bearer value is not metrics.token")

/** On the main port, unless they have one of their own. */
export function metricsHandler({ metrics: { port } }: Config, read: ReadMetrics): Handler<typeof getMetrics> {
  return async ({ request }) => {
    if (port !== undefined) throw new Fault("not_found", "Cannot find the metrics: they are on metrics.port")
    return new Document(read(request.header("authorization")))
  }
}

/** Null when no port is configured. */
export async function openConfiguredMetricsPort(
  { metrics: { host, port } }: Config,
  read: ReadMetrics,
  log: Log,
): Promise<{ close(): Promise<void> } | null> {
  if (port === undefined) return null
  const opened = await openMetricsPort({ host, port }, read)
  log.info({ host, port: opened.port }, "metrics are on a port of their own")
  return opened
}

export function addDiskMetrics(metrics: Metrics, disk: DiskSpace): void {
  metrics.gauge("umpire_disk_free_bytes", "Free space on the disk of the data directory.", () =>
    disk.freeBytes === null ? [] : [{ labels: {}, value: disk.freeBytes }],
  )
  metrics.gauge(
    "umpire_disk_reserved_bytes",
    "What of it is kept for usage: with less, uploads are refused and content is dropped.",
    one(() => disk.reservedBytes),
  )
}

export function addRequestBytesMetrics(metrics: Metrics, budget: ByteBudget): void {
  metrics.gauge(
    "umpire_request_bytes",
    "Bytes of request bodies and answers in memory.",
    one(() => budget.heldBytes),
  )
  metrics.gauge(
    "umpire_request_bytes_limit_bytes",
    "What they may be; with more, bodies are refused with over_capacity.",
    one(() => budget.bytesMax),
  )
}

const one = (measure: () => number) => (): Sample[] => [{ labels: {}, value: measure() }]

/** Under the names that Prometheus' own client libraries use. */
export function addProcessMetrics(metrics: Metrics): void {
  metrics.gauge("umpire_build_info", "1, with the version as a label.", () => [
    { labels: { version }, value: 1 },
  ])
  metrics.gauge(
    "process_resident_memory_bytes",
    "Memory of the process; engines have their own.",
    one(() => process.memoryUsage.rss()),
  )
  metrics.gauge(
    "process_start_time_seconds",
    "When the process started, in seconds since 1970.",
    one(() => performance.timeOrigin / millisecondsPerSecond),
  )
  metrics.total("process_cpu_seconds_total", "Processor time of the process.", () => {
    const { user, system } = process.cpuUsage()
    return [{ labels: {}, value: (user + system) / microsecondsPerSecond }]
  })
  metrics.total(
    "umpire_event_loop_active_seconds_total",
    "Time in which the main thread was busy; its rate is the share.",
    one(() => performance.eventLoopUtilization().active / millisecondsPerSecond),
  )
  metrics.gauge(
    "umpire_event_loop_largest_read_bytes",
    "Largest body that the main thread parsed or checked itself; those of 64 KiB and more are read in other threads.",
    one(largestReadBytes),
  )
}
