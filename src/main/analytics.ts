/** Builds analytics from the configuration: where the events are, and what moves them there. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { Metrics, Sample } from "../base/telemetry.ts"
import { analyticsHandlers, freshEvents, type ContentStates } from "../control/analytics/handlers.ts"
import { type EventOperatorDeps, eventOperatorHandlers } from "../control/operator/events.ts"
import type { BillingDeps } from "../control/billing/parts.ts"
import type { PeriodicTask } from "../control/periodic.ts"
import { type Events, openEvents, type Place } from "../store/events/events.ts"
import {
  type ExportState,
  type ExportedJournal,
  analyticsConsumer,
  openExporter,
} from "../store/events/exporter.ts"
import type { DiskSpace } from "../store/disk-space.ts"
import type { EventBatch } from "../store/events/event.ts"
import { SharedLog } from "../store/events/shared-log.ts"
import type { Database } from "../store/sql.ts"

const dayMs = 86_400_000
const closeWithinMs = 5_000
const millisecondsPerSecond = 1_000

/** Where the events are to be, or null where none are kept. */
function placeOf({ analytics, data_dir }: Config): Place | null {
  if (analytics.clickhouse_url !== undefined) return { engine: "clickhouse", url: analytics.clickhouse_url }
  return analytics.embedded ? { engine: "duckdb", directory: join(data_dir, "analytics") } : null
}

/** The consumers of the journal for analytics: none without an analytics engine. */
export const analyticsConsumers = (config: Config): string[] => (placeOf(config) ? [analyticsConsumer] : [])

/** For a command on a server that does not run. */
export function openEventsOf(config: Config): Events | null {
  const place = placeOf(config)
  return place ? openEvents({ place }) : null
}

interface AnalyticsNeeds {
  readonly config: Config
  /** Nothing is kept of any request where it is left out. */
  readonly content?: ContentStates
  readonly journal: ExportedJournal
  readonly database: Database
  readonly disk: Pick<DiskSpace, "claim">
  readonly clock: Clock
  readonly log: Log
}

export interface Analytics {
  readonly handlers: ReturnType<typeof analyticsHandlers>
  readonly tasks: readonly PeriodicTask[]
  readonly spendByTag: BillingDeps["spendByTag"]
  /** Null where none are kept. */
  readonly events: Events | null
  operatorHandlers(
    deps: Pick<EventOperatorDeps, "database" | "settle">,
  ): ReturnType<typeof eventOperatorHandlers>
  /** How far the export is. */
  addMetrics(metrics: Metrics): void
  close(): Promise<void>
}

/** The process of the engine is not started before there is something to ask or to keep. */
export async function openAnalytics({
  config,
  journal,
  database,
  disk,
  content,
  clock,
  log,
}: AnalyticsNeeds): Promise<Analytics> {
  const place = placeOf(config)
  const retentionDays = config.analytics.retention_days
  if (!place) {
    return {
      handlers: analyticsHandlers(null),
      spendByTag: async (question) => await (await freshEvents(null)).ask("spendByTag", question),
      tasks: [],
      events: null,
      operatorHandlers: (deps) => eventOperatorHandlers({ ...deps, clock, retentionDays, events: null }),
      addMetrics: () => undefined,
      close: async () => undefined,
    }
  }
  const events = openEvents({
    place,
    onDeath: (reason) => log.error({ reason }, "the analytics process died"),
  })
  const directory = join(config.data_dir, "analytics")
  const positionFile = join(directory, "exported.json")
  const isEmbedded = place.engine === "duckdb"
  const earlier = join(directory, "chdb")
  if (existsSync(earlier))
    log.warn(
      { folder: earlier },
      "events of version 0.1 are left behind: export them with that version (umpire analytics export), import the file here, and remove the folder",
    )
  const hasDiskSpace = (): boolean => !isEmbedded || disk.claim(0)
  const { gatewayId } = journal
  const shared =
    isEmbedded && config.database.url !== undefined
      ? await SharedLog.open({
          database,
          events,
          gatewayId,
          positionFile: join(directory, "shared-position"),
          log,
          hasDiskSpace,
        })
      : null
  const share = shared ? async (batch: EventBatch) => await shared.publish(batch) : undefined
  const exporter = await openExporter({ events, journal, positionFile, clock, log, hasDiskSpace, share })
  exporter.start()
  const flush = async (): Promise<void> => void (await Promise.all([exporter.flush(), shared?.follow()]))
  return {
    spendByTag: async (question) =>
      await (await freshEvents({ events, flush, clock })).ask("spendByTag", question),
    handlers: analyticsHandlers({ events, flush, clock, ...(content ? { content } : {}) }),
    events,
    tasks: [
      {
        // Each gateway has an embedded engine of its own.
        name: isEmbedded ? `analytics.prune.${gatewayId}` : "analytics.prune",
        everyMs: dayMs,
        run: async () => {
          const beforeMs = clock.nowMs() - retentionDays * dayMs
          await shared?.prune(beforeMs)
          // Before the first export there is nothing to prune, and no process to be started for it.
          if (existsSync(positionFile)) await events.ask("prune", { beforeMs })
        },
      },
    ],
    operatorHandlers: ({ database, settle }) =>
      eventOperatorHandlers({
        database,
        clock,
        retentionDays,
        events,
        share,
        settle: async () => {
          await settle()
          await flush()
        },
      }),
    addMetrics: (metrics) => addMetrics(metrics, () => exporter.state()),
    close: async () => {
      const timer = setTimeout(() => void exporter.close(), closeWithinMs)
      await flush().catch(() => undefined)
      clearTimeout(timer)
      await exporter.close()
      await shared?.close()
      await events.close()
    },
  }
}

function addMetrics(metrics: Metrics, state: () => ExportState): void {
  const one = (measure: (state: ExportState) => number) => (): Sample[] => [
    { labels: {}, value: measure(state()) },
  ]
  metrics.gauge(
    "umpire_analytics_lag_seconds",
    "How long events have been waiting to be exported.",
    one(({ lagMs }) => lagMs / millisecondsPerSecond),
  )
  metrics.gauge(
    "umpire_analytics_failing",
    "1 while events cannot be exported.",
    one(({ failing }) => Number(failing)),
  )
  metrics.total(
    "umpire_analytics_exported_events_total",
    "Events exported since the start.",
    one(({ exportedEvents }) => exportedEvents),
  )
  metrics.total(
    "umpire_analytics_dropped_bytes_total",
    "Journal given up because it could not be exported.",
    one(({ droppedBytes }) => droppedBytes),
  )
  metrics.total(
    "umpire_analytics_damaged_lines_total",
    "Lines of the journal that cannot be read.",
    one(({ damagedLines }) => damagedLines),
  )
}
