/** The analytics endpoints: a question for the analytics process, about the organization in the path. */
import { setTimeout as wait } from "node:timers/promises"
import { type Clock, systemClock } from "../../base/clock.ts"
import type { AnalyticsTable, OverviewQuery } from "../../contract/analytics.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { SequenceTable } from "../../contract/sequences.ts"
import type { Events } from "../../store/events/events.ts"
import type { Question } from "../../store/events/reports.ts"
import { type ContentStates, noContent, requestLogHandlers } from "./requests.ts"

interface AnalyticsDeps {
  readonly events: Events
  readonly clock: Clock
  /** Nothing is kept where it is left out. */
  readonly content?: ContentStates
  /** Exports what the journal holds now. */
  flush(): Promise<void>
}

/** A question waits this long for what has just happened; an engine that is behind answers with what it has. */
const freshWithinMs = 10_000

/** Null where no engine is available. */
export function analyticsHandlers(deps: AnalyticsDeps | null): Handlers<AnalyticsTable & SequenceTable> {
  return {
    ...requestLogHandlers({
      events: async () => await freshEvents(deps),
      content: deps?.content ?? noContent,
      clock: deps?.clock ?? systemClock,
    }),
    getAnalyticsOverview: async ({ params, query }) => {
      const events = await freshEvents(deps)
      return await events.ask(query.view, questionOf(params.org_id, query))
    },
    getAnalyticsSequence: async ({ params, query }) => {
      const events = await freshEvents(deps)
      const sequence = await events.ask("sequence", {
        organizationId: params.org_id,
        seqId: params.seq_id,
        startMs: query.range_start,
        endMs: query.range_end,
      })
      if (!sequence)
        throw new Fault(
          "not_found",
          "Cannot find the sequence: no such id is kept for the organization and range",
        )
      return { sequence }
    },
  }
}

/** Throws where no engine is available. */
export async function freshEvents(deps: AnalyticsDeps | null): Promise<Events> {
  if (!deps)
    throw new Fault(
      "analytics_not_configured",
      "Cannot answer: no analytics engine is configured; set UMPIRE_CLICKHOUSE_URL, or install an embedded engine",
    )
  const timer = new AbortController()
  await Promise.race([
    deps.flush().catch(() => undefined),
    wait(freshWithinMs, undefined, { signal: timer.signal }).catch(() => undefined),
  ])
  timer.abort()
  return deps.events
}

function questionOf(organizationId: string, query: OverviewQuery): Question {
  return {
    organizationId,
    startMs: query.range_start,
    endMs: query.range_end,
    groupBy: query.group_by,
    metric: query.metric,
    buckets: query.buckets,
    limit: query.limit,
    filters: query.f,
  }
}
