/**
 * The endpoints of analytics and of the request log: a question for the analytics process, about the organization in the
 * path.
 */
import { setTimeout as wait } from "node:timers/promises"
import { type Clock, systemClock } from "../../base/clock.ts"
import { ticksOfUsd } from "../../base/money.ts"
import type { AnalyticsTable, OverviewQuery, Dimension, Filter } from "../../contract/analytics.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { SequenceTable, ContentState, SequenceDetail, SequencesQuery } from "../../contract/sequences.ts"
import type { Events } from "../../store/events/events.ts"
import type { Question } from "../../store/events/reports.ts"
import type { LogQuestion, PagePosition, SequenceFacts } from "../../store/events/request-log.ts"

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
    ...requestLogHandlers(deps),
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

/** Says what is kept of the content of sequences. */
export interface ContentStates {
  /** A sequence that is not in the answer has none. */
  of(organizationId: string, seqIds: readonly string[]): Promise<ReadonlyMap<string, ContentState>>
}

const noContent: ContentStates = { of: async () => new Map() }

/** Pages of requests, and one request. */
function requestLogHandlers(deps: AnalyticsDeps | null): Handlers<SequenceTable> {
  const { content = noContent, clock = systemClock } = deps ?? {}
  const detailed = async (
    organizationId: string,
    sequences: readonly SequenceFacts[],
  ): Promise<SequenceDetail[]> => {
    const seqIds = sequences.map(({ seq_id }) => seq_id)
    const states = seqIds.length === 0 ? new Map() : await content.of(organizationId, seqIds)
    return sequences.map((sequence) => ({ ...sequence, content: states.get(sequence.seq_id) ?? "none" }))
  }
  return {
    listSequences: async ({ params, query }) => {
      const events = await freshEvents(deps)
      const question = logQuestionOf(params.org_id, query, clock.nowMs())
      const { sequences, next } = await events.ask("requests", question)
      return { data: await detailed(params.org_id, sequences), next_cursor: next ? encodeCursor(next) : null }
    },
    getSequence: async ({ params }) => {
      const events = await freshEvents(deps)
      const found = await events.ask("request", {
        organizationId: params.org_id,
        seqId: params.seq_id,
        startMs: undefined,
        endMs: undefined,
      })
      const [sequence] = await detailed(params.org_id, found ? [found] : [])
      if (!sequence)
        throw new Fault("not_found", "Cannot find the sequence: no such id is kept for the organization")
      return sequence
    },
  }
}

function logQuestionOf(organizationId: string, query: SequencesQuery, nowMs: number): LogQuestion {
  const { api_key_id, principal_id, model, question_set_id, endpoint, error_code, region, request_id } = query
  return {
    organizationId,
    startMs: query.range_start,
    endMs: query.range_end,
    nowMs,
    equals: given({
      api_key_id,
      principal_id,
      question_set_id,
      call_source: endpoint,
      result: query.result,
      error_code,
      region,
      request_id,
    }),
    questionSetVersion: query.question_set_version,
    latencyMs: { min: query.latency_ms_min, max: query.latency_ms_max },
    cost: { min: ticksOf(query.cost_min), max: ticksOf(query.cost_max) },
    tags: query.tag,
    verdict: query.verdict,
    filters: [...query.f, ...filterBy("model", model), ...filterBy("language", query.language)],
    after: query.cursor === undefined ? undefined : decodeCursor(query.cursor),
    limit: query.limit,
  }
}

const filterBy = (dimension: Dimension, value: string | undefined): Filter[] =>
  value === undefined ? [] : [{ dimension, value, excluded: false }]

function given(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

const ticksOf = (usd: string | undefined): number | undefined =>
  usd === undefined ? undefined : Number(ticksOfUsd(usd))

/** Always as many, so that a text that is no cursor is told from one. */
const cursorDigits = 16

/** Opaque to clients. The id is in base64url, because an imported one may hold anything. */
const encodeCursor = ({ timestamp, seqId }: PagePosition): string =>
  `${String(timestamp).padStart(cursorDigits, "0")}.${Buffer.from(seqId).toString("base64url")}`

function decodeCursor(cursor: string): PagePosition {
  const [timestamp = "", seqId = ""] = cursor.split(".")
  return { timestamp: Number(timestamp), seqId: Buffer.from(seqId, "base64url").toString() }
}
