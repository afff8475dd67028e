/** Ninety days of events for two hundred organizations: most made inside the engine, some sent the way a gateway sends them. */
import { join } from "node:path"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import type { EventEngine } from "../src/store/events/engine.ts"
import { columnNames } from "../src/store/events/event.ts"
import { type Events, openEvents, type Place } from "../src/store/events/events.ts"
import { analyticsConsumer, openExporter } from "../src/store/events/exporter.ts"
import { openJournal } from "../src/store/journal/journal.ts"
import { Chance, makeRecord } from "../test/analytics-samples.ts"

export const dayMs = 86_400_000
export const daysCount = 90
export const organizationsCount = 200
export const startMs = Date.UTC(2026, 0, 1)
export const endMs = startMs + daysCount * dayMs

export const organizationName = (number: number): string => `org_${String(number).padStart(26, "0")}`

/** Few enough that a statement ends well within its time. */
const rowsPerStatement = 100_000

/** Fills the table with statements: what is measured afterwards is reading, and ten million rows must not take an hour. */
export async function fill(
  engine: EventEngine,
  name: Place["engine"],
  eventsCount: number,
  given: Partial<Load> = {},
): Promise<void> {
  const load = { firstOrganization: organizationName(0), startMs, eventsCount, ...given }
  for (let first = 0; first < eventsCount; first += rowsPerStatement) {
    const count = Math.min(rowsPerStatement, eventsCount - first)
    await engine.query({ text: fillStatement(name, load, first, count), values: {} })
  }
}

const text = (number: string): string => `CAST(${number} AS VARCHAR)`
const padded = (number: string, length: number): string => `lpad(${text(number)}, ${length}, '0')`

interface Load {
  readonly eventsCount: number
  readonly firstOrganization: string
  readonly startMs: number
}

/** In order of time, as gateways write them; every second event is of the first organization. */
function fillStatement(name: Place["engine"], load: Load, first: number, count: number): string {
  const duckdb = name === "duckdb"
  const numbers = duckdb
    ? `(SELECT range AS i FROM range(${first}, ${first + count}))`
    : `(SELECT toInt64(number) AS i FROM numbers(${first}, ${count}))`
  /** From 0 to below the limit, another number for each salt. */
  const draw = (salt: number, limit: number): string =>
    `(${duckdb ? "hash" : "cityHash64"}(i * 64 + ${salt}) % ${limit})`
  const values: Record<(typeof columnNames)[number], string> = {
    organization_id: `CASE WHEN o = 0 THEN '${load.firstOrganization}' ELSE 'org_' || ${padded("o", 26)} END`,
    timestamp: `${load.startMs} + CAST(floor(i * ${(daysCount * dayMs) / load.eventsCount}) AS BIGINT)`,
    seq_id: `'seq_' || ${padded("i", 10)} || ${padded(draw(1, 2 ** 40), 16)}`,
    billing_account_id: `'ba_' || ${text("o")}`,
    model: `'model-' || ${text(draw(2, 8))}`,
    call_source: `CASE WHEN ${draw(3, 3)} = 0 THEN 'chat_completions' ELSE 'decisions' END`,
    inference_type: "'generation'",
    result: "CASE WHEN failed = 1 THEN 'error' ELSE 'success' END",
    api_key_id: `'key_' || ${text("o")} || '_' || ${text(draw(4, 20))}`,
    request_id: `'req_' || ${text("i")} || '_' || ${text(draw(5, 2 ** 31))}`,
    stop_reason: "'stop'",
    client_ip: `'10.' || ${text(draw(6, 4))} || '.' || ${text(draw(7, 256))} || '.' || ${text(draw(8, 256))}`,
    client_ua: `'client/' || ${text(draw(9, 12))}`,
    error_code: "CASE WHEN failed = 1 THEN 'rate_limited' ELSE '' END",
    error_message: "CASE WHEN failed = 1 THEN 'Too many requests' ELSE '' END",
    region: "'local'",
    tool_calls: `CASE WHEN ${draw(10, 10)} = 0 THEN ['tool-' || ${text(draw(11, 15))}] ELSE [] END`,
    input_tokens: draw(12, 4000),
    cached_input_tokens: `${draw(13, 2)} * ${draw(14, 1000)}`,
    output_tokens: draw(15, 500),
    gateway_latency_ms: "latency",
    seq_duration_ms: `latency + ${draw(17, 2000)}`,
    execution_ms: "latency",
    cost_ticks: draw(18, 1_000_000),
    principal_kind: "'key'",
    principal_id: `'key_' || ${text("o")} || '_' || ${text(draw(4, 20))}`,
    question_set_id: `CASE WHEN of_set = 1 THEN 'qs_' || ${text(draw(22, 10))} ELSE '' END`,
    question_set: `CASE WHEN of_set = 1 THEN 'set-' || ${text(draw(22, 10))} ELSE '' END`,
    question_set_version: `CASE WHEN of_set = 1 THEN 1 + ${draw(23, 9)} ELSE NULL END`,
    questions: `CASE WHEN of_set = 1 THEN 1 + ${draw(24, 6)} ELSE NULL END`,
    abstained: `CASE WHEN of_set = 1 THEN CASE WHEN ${draw(25, 50)} = 0 THEN 1 ELSE 0 END ELSE NULL END`,
    tags: `CASE WHEN ${draw(26, 2)} = 0 THEN ['team=' || ${text(draw(27, 30))}, 'job=' || ${text("i")}] ELSE [] END`,
    virtual_model: "''",
    stages: "''",
    language: `CASE WHEN of_set = 1 THEN 'en' ELSE '' END`,
    attempts: `'[{"region":"local","result":"success","ms":' || ${text("latency")} || '}]'`,
    queue_ms: `${draw(28, 100)} / 100`,
    route_ms: `${draw(29, 100)} / 100`,
    engine_ms: `latency + ${draw(30, 100)} / 100`,
  }
  return `
INSERT INTO sequences
SELECT ${columnNames.map((column) => values[column]).join(",\n  ")}
FROM (
  SELECT i, CASE WHEN i % 2 = 0 THEN 0 ELSE 1 + CAST(${draw(20, organizationsCount - 1)} AS BIGINT) END AS o,
    CASE WHEN ${draw(21, 20)} = 0 THEN 1 ELSE 0 END AS failed,
    CASE WHEN ${draw(31, 5)} = 0 THEN 1 ELSE 0 END AS of_set,
    CAST(floor(5 * exp(${draw(16, 600)} / 100)) AS INTEGER) AS latency
  FROM ${numbers} AS n
) AS made`
}

export interface Sent {
  readonly events: Events
  readonly eventsPerSecond: number
  /** Of an event of the first organization. */
  readonly seqId: string
}

/** Sends events through a journal, the exporter and the analytics process, which stays open. */
export async function send(place: Place, directory: string, count: number): Promise<Sent> {
  const journal = await openJournal({
    directory: join(directory, "journal"),
    consumers: [analyticsConsumer],
    newGatewayId: () => "gw_bench",
  })
  const events = openEvents({ place })
  await events.ask("holdings", null)
  const positionFile = join(directory, "exported.json")
  const exporter = await openExporter({ events, journal, positionFile, clock: systemClock, log: silentLog })
  const chance = new Chance(1)
  const seqIds: string[] = []
  let nowMs = endMs
  const ids = createIds({ ...systemClock, nowMs: () => nowMs })
  for (let index = 0; index < count; index++) {
    nowMs = endMs + index
    const record = {
      ...makeRecord(chance, index),
      seq_id: ids.next("seq"),
      timestamp: nowMs,
      organization_id: organizationName(index % organizationsCount),
    }
    seqIds.push(record.seq_id)
    await journal.append(record)
  }
  const begunMs = performance.now()
  await exporter.flush()
  const seconds = (performance.now() - begunMs) / 1000
  await exporter.close()
  await journal.close()
  return { events, eventsPerSecond: count / seconds, seqId: seqIds[0] ?? "" }
}
