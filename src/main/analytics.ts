/** Builds analytics from the configuration: where the events are, and what moves them there. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import type { Metrics } from "../base/metrics.ts"
import { analyticsHandlers } from "../control/analytics/handlers.ts"
import { type AnalyticsOperatorParts, analyticsOperations } from "../control/analytics/operations.ts"
import type { PeriodicTask } from "../control/periodic.ts"
import { type Events, openEvents } from "../store/events/events.ts"
import {
  type ExportState,
  type ExportedJournal,
  analyticsConsumer,
  openExporter,
} from "../store/events/exporter.ts"
import type { Place } from "../store/events/service.ts"

const dayMs = 86_400_000
const closeWithinMs = 5_000

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
  readonly journal: ExportedJournal
  readonly clock: Clock
  readonly log: Log
}

export interface Analytics {
  readonly handlers: ReturnType<typeof analyticsHandlers>
  readonly tasks: readonly PeriodicTask[]
  /** Null where none are kept. */
  readonly events: Events | null
  operations(
    parts: Pick<AnalyticsOperatorParts, "database" | "settle">,
  ): ReturnType<typeof analyticsOperations>
  /** How far the export is. */
  addMetrics(metrics: Metrics): void
  close(): Promise<void>
}

/** The process of the engine is not started before there is something to ask or to keep. */
export async function openAnalytics({ config, journal, clock, log }: AnalyticsNeeds): Promise<Analytics> {
  const place = placeOf(config)
  const retentionDays = config.analytics.retention_days
  if (!place) {
    return {
      handlers: analyticsHandlers(null),
      tasks: [],
      events: null,
      operations: (parts) => analyticsOperations({ ...parts, clock, retentionDays, events: null }),
      addMetrics: () => undefined,
      close: async () => undefined,
    }
  }
  const events = openEvents({
    place,
    onDeath: (reason) => log.error({ reason }, "the analytics process died"),
  })
  const positionFile = join(config.data_dir, "analytics", "exported.json")
  const exporter = await openExporter({ events, journal, positionFile, clock, log })
  exporter.start()
  const flush = async (): Promise<void> => await exporter.flush()
  return {
    handlers: analyticsHandlers({ events, flush }),
    events,
    tasks: [
      {
        name: "analytics.prune",
        everyMs: dayMs,
        // Before the first export there is nothing to prune, and no process to be started for it.
        run: async () =>
          existsSync(positionFile) &&
          (await events.ask("prune", { beforeMs: clock.nowMs() - retentionDays * dayMs })),
      },
    ],
    operations: ({ database, settle }) =>
      analyticsOperations({
        database,
        clock,
        retentionDays,
        events,
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
      await events.close()
    },
  }
}

function addMetrics(metrics: Metrics, state: () => ExportState): void {
  const gauges: [string, string, (state: ExportState) => number][] = [
    ["lag_ms", "How long events have been waiting to be exported.", ({ lagMs }) => lagMs],
    ["failing", "1 while events cannot be exported.", ({ failing }) => Number(failing)],
    ["exported_events", "Events exported since the start.", ({ exportedEvents }) => exportedEvents],
    [
      "dropped_bytes",
      "Journal given up because it could not be exported.",
      ({ droppedBytes }) => droppedBytes,
    ],
    ["damaged_lines", "Lines of the journal that cannot be read.", ({ damagedLines }) => damagedLines],
  ]
  for (const [name, help, measure] of gauges)
    metrics.gauge(`umpire_analytics_${name}`, help, () => [{ labels: {}, value: measure(state()) }])
}
