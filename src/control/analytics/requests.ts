/** The request log's endpoints: pages of requests, and one request. */
import type { Clock } from "../../base/clock.ts"
import { ticksOfUsd } from "../../base/money.ts"
import type { Dimension, Filter } from "../../contract/analytics.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { ContentState, SequenceDetail, SequenceTable, SequencesQuery } from "../../contract/sequences.ts"
import type { Events } from "../../store/events/events.ts"
import type { LogQuestion, PagePosition, SequenceFacts } from "../../store/events/request-log.ts"

/** Says what is kept of the content of sequences. */
export interface ContentStates {
  /** A sequence that is not in the answer has none. */
  of(organizationId: string, seqIds: readonly string[]): Promise<ReadonlyMap<string, ContentState>>
}

export const noContent: ContentStates = { of: async () => new Map() }

interface RequestLogDeps {
  /** The events, with what has just happened. Throws where no engine is available. */
  readonly events: () => Promise<Events>
  readonly content: ContentStates
  readonly clock: Clock
}

export function requestLogHandlers({ events, content, clock }: RequestLogDeps): Handlers<SequenceTable> {
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
      const asked = await events()
      const { sequences, next } = await asked.ask("requests", questionOf(params.org_id, query, clock.nowMs()))
      return { data: await detailed(params.org_id, sequences), next_cursor: next ? encodeCursor(next) : null }
    },
    getSequence: async ({ params }) => {
      const asked = await events()
      const found = await asked.ask("request", {
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

function questionOf(organizationId: string, query: SequencesQuery, nowMs: number): LogQuestion {
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
