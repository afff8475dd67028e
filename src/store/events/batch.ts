/** Events on their way between gateways: rows as JSON, a line each, in gzip. */
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { column } from "../rows.ts"
import type { SqlRow } from "../sql.ts"
import { EventEngineError } from "./engine.ts"
import { addedColumnNames, columns, type ColumnType, type EventRow, StoredRow } from "./event.ts"

export interface EventBatch {
  readonly data: Uint8Array
  readonly newestMs: number
}

/** Of a batch of the journal, whose rows as JSON are larger than its records. */
const bytesMax = 64 * 1024 * 1024

export async function packEvents(rows: readonly EventRow[]): Promise<EventBatch> {
  const lines = rows.map((row) => JSON.stringify({ ...row, cost_ticks: String(row.cost_ticks) }))
  return {
    data: await promisify(gzip)(lines.join("\n")),
    newestMs: rows.reduce((newest, { timestamp }) => Math.max(newest, timestamp), 0),
  }
}

export async function unpackEvents(data: Uint8Array): Promise<EventRow[]> {
  const text = (await promisify(gunzip)(data, { maxOutputLength: bytesMax })).toString()
  return text.split("\n").map((line) => eventFrom(JSON.parse(line)))
}

const defaults: Partial<Record<ColumnType, unknown>> = { text: "", name: "", texts: [] }
/** Of events that a version wrote which did not have these columns. */
const added = Object.fromEntries(addedColumnNames.map((name) => [name, defaults[columns[name]] ?? null]))

export function eventFrom(given: SqlRow): EventRow {
  try {
    const cost = column.bigint.readRow({ cost_ticks: given["cost_ticks"] })
    return { ...StoredRow.readRow({ ...added, ...given, cost_ticks: 0 }), cost_ticks: cost }
  } catch (cause) {
    throw new EventEngineError(`Cannot use an event: ${cause instanceof Error ? cause.message : "invalid"}`, {
      cause,
    })
  }
}
