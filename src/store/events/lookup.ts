/** Finds one event by its id. */
import { timeOfId } from "../../base/ids.ts"
import type { Sequence } from "../../contract/analytics.ts"
import { type EventEngine, StatementWriter } from "./engine.ts"
import { StoredRow } from "./event.ts"

export interface Lookup {
  readonly organizationId: string
  readonly seqId: string
  readonly startMs: number | undefined
  readonly endMs: number | undefined
}

/** An id is made when its request begins; requests that were imported may carry ids of another time. */
const nearMs = 3_600_000

export async function findSequence(engine: EventEngine, lookup: Lookup): Promise<Sequence | null> {
  const row = await findRow(engine, lookup)
  return row ? sequenceOf(row) : null
}

export async function findRow(engine: EventEngine, lookup: Lookup): Promise<StoredRow | null> {
  const { startMs = 0, endMs = Number.MAX_SAFE_INTEGER } = lookup
  const madeMs = timeOfId(lookup.seqId)
  if (madeMs !== null) {
    const near = await findBetween(
      engine,
      lookup,
      Math.max(startMs, madeMs - nearMs),
      Math.min(endMs, madeMs + nearMs),
    )
    if (near) return near
  }
  return await findBetween(engine, lookup, startMs, endMs)
}

async function findBetween(
  engine: EventEngine,
  { organizationId, seqId }: Lookup,
  startMs: number,
  endMs: number,
): Promise<StoredRow | null> {
  if (startMs >= endMs) return null
  const writer = new StatementWriter(engine.dialect)
  const text = `
SELECT * FROM ${engine.dialect.table}
WHERE organization_id = ${writer.text(organizationId)} AND seq_id = ${writer.text(seqId)}
  AND timestamp >= ${writer.integer(startMs)} AND timestamp < ${writer.integer(endMs)}
ORDER BY timestamp ASC
LIMIT 1`
  const [found] = StoredRow.readAll(await engine.query(writer.finish(text)))
  return found ?? null
}

export function sequenceOf(row: StoredRow): Sequence {
  return {
    seq_id: row.seq_id,
    timestamp: row.timestamp,
    model: row.model,
    call_source: row.call_source,
    result: row.result,
    input_tokens: row.input_tokens,
    cached_input_tokens: row.cached_input_tokens,
    output_tokens: row.output_tokens,
    gateway_latency_ms: row.gateway_latency_ms,
    seq_duration_ms: row.seq_duration_ms,
    tool_calls: [...row.tool_calls],
    api_key_id: orNull(row.api_key_id),
    client_ip: orNull(row.client_ip),
    client_ua: orNull(row.client_ua),
    error_code: orNull(row.error_code),
    error_message: orNull(row.error_message),
    inference_type: orNull(row.inference_type),
    request_id: orNull(row.request_id),
    stop_reason: orNull(row.stop_reason),
  }
}

export const orNull = (text: string): string | null => (text === "" ? null : text)
