/** The events in a ClickHouse server, through its own client. */
import { createWriteStream } from "node:fs"
import { rm } from "node:fs/promises"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createClient } from "@clickhouse/client"
import { type EventEngine, EventEngineError, type Statement, statementMaxMs, type Dialect } from "./engine.ts"
import { column } from "../rows.ts"
import type { SqlRow } from "../sql.ts"
import {
  type EventRow,
  columnNames,
  type ColumnType,
  addedColumnNames,
  columns,
  firstColumnNames,
  stageFields,
} from "./event.ts"

const connectionsMax = 4
const requestMaxMs = 2 * statementMaxMs

/** The address names user, password and database: `http://user:password@host:8123/database`. */
export async function openClickhouse(url: string): Promise<EventEngine> {
  const client = createClient({
    url,
    application: "umpire",
    max_open_connections: connectionsMax,
    request_timeout: requestMaxMs,
    compression: { request: false, response: false },
  })
  for (const query of clickhouseSchema) await client.command({ query })
  const query = async ({ text, values }: Statement): Promise<SqlRow[]> => {
    const result = await client.query({ query: text, query_params: { ...values }, format: "JSONEachRow" })
    return await result.json<SqlRow>()
  }
  return {
    dialect: clickhouseDialect,
    query,
    insert: async (rows, { token }) => {
      if (rows.length === 0) return
      const { stream } = await client.exec({
        query: `INSERT INTO sequences (${clickhouseColumns.join(", ")})
SETTINGS insert_deduplication_token = '${token.replaceAll(/[^\w:.-]/g, "_")}' FORMAT ${clickhouseFormat}`,
        values: Readable.from([encodeRows(rows)]),
      })
      stream.resume()
    },
    prune: async (beforeMs) => {
      const { months, rest } = clickhousePrune(beforeMs)
      for (const partition of column.integer.readAll(await query({ text: months, values: {} })))
        await client.command({ query: `ALTER TABLE sequences DROP PARTITION ${partition}` })
      await client.command({ query: rest })
    },
    writeParquet: async ({ text, values }, file) => {
      const { stream } = await client.exec({ query: `${text} FORMAT Parquet`, query_params: { ...values } })
      // A file that is there already would keep its mode.
      await rm(file, { force: true })
      await pipeline(stream, createWriteStream(file))
    },
    copy: async () => {
      throw new EventEngineError("Cannot copy the events: ClickHouse keeps them; use its own backups")
    },
    close: async () => {
      await client.close()
    },
  }
}

const clickhouseColumns = columnNames
const clickhouseFormat = "JSONCompactEachRow"

function encodeRows(rows: readonly EventRow[]): Buffer {
  return Buffer.from(rows.map((row) => `${encodeRow(row)}\n`).join(""))
}

const encodeRow = (row: EventRow): string =>
  JSON.stringify(columnNames.map((name) => (name === "cost_ticks" ? String(row[name]) : row[name])))

const stageTypes = { text: "String", number: "Float64" }
const clickhouseStage = Object.entries(stageFields).map(([name, type]) => `${name} ${stageTypes[type]}`)
const clickhouseStages = `JSONExtract(stages, 'Array(Tuple(${clickhouseStage.join(", ")}))')`

const clickhouseDialect: Dialect = {
  parameter: (name, type) => `{${name}:${type}}`,
  table: "sequences FINAL",
  // Rows of one sequence share their month, so months need not be compared with each other.
  ending: [
    "SETTINGS do_not_merge_across_partitions_select_final = 1",
    `max_execution_time = ${statementMaxMs / 1000}`,
    "output_format_json_quote_64bit_integers = 0",
  ].join(", "),
  percentile: (q, column, exact) => `${exact ? "quantileExact" : "quantileTDigest"}(${q})(${column})`,
  percentiles: (column, exact) => `${exact ? "quantilesExact" : "quantilesTDigest"}(0.5, 0.95)(${column})`,
  quotient: (dividend, divisor) => `intDiv(${dividend}, ${divisor})`,
  unnest: (list) => `arrayJoin(${list})`,
  orBlank: (list) => `if(empty(${list}), [''], ${list})`,
  isOneOf: (value, list) => `${value} IN ${list}`,
  positionIn: (value, list) => `indexOf(${list}, ${value})`,
  contains: (list, value) => `has(${list}, ${value})`,
  hasAny: (list, other) => `hasAny(${list}, ${other})`,
  hasAll: (list, other) => `hasAll(${list}, ${other})`,
  isEmpty: (list) => `empty(${list})`,
  afterPrefix: (list, prefix) =>
    `substring(arrayFirst(one -> startsWith(one, ${prefix}), ${list}), length(${prefix}) + 1)`,
  dayNumber: (timestamp) => `intDiv(${timestamp}, 86400000)`,
  stages: clickhouseStages,
  stageModels: `arrayMap(one -> one.model, ${clickhouseStages})`,
}

const types: Record<ColumnType, string> = {
  text: "String CODEC(ZSTD(1))",
  name: "LowCardinality(String)",
  texts: "Array(LowCardinality(String))",
  count: "UInt32 CODEC(T64, ZSTD(1))",
  instant: "Int64 CODEC(DoubleDelta, ZSTD(1))",
  ticks: "Int64 CODEC(T64, ZSTD(1))",
  "known count": "Nullable(UInt32) CODEC(ZSTD(1))",
  "known ms": "Nullable(Float64) CODEC(ZSTD(1))",
}

/** Inserts that are remembered by their token; a repeated one among the last so many is dropped as a whole. */
const insertsRemembered = 1000

const declared = (name: keyof typeof columns): string => `${name} ${types[columns[name]]}`

/** fsync: the journal forgets what was exported, so an export must survive a power cut. */
const clickhouseTable = `
CREATE TABLE IF NOT EXISTS sequences (
  ${firstColumnNames.map(declared).join(",\n  ")},
  INDEX seq_id_index seq_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(timestamp, 'UTC'))
ORDER BY (organization_id, timestamp, seq_id)
SETTINGS non_replicated_deduplication_window = ${insertsRemembered}, fsync_after_insert = 1, fsync_part_directory = 1`

const clickhouseSchema: readonly string[] = [
  clickhouseTable,
  `ALTER TABLE sequences
  ${addedColumnNames.map((name) => `ADD COLUMN IF NOT EXISTS ${declared(name)}`).join(",\n  ")}`,
]

/** Whole months go at once; what is left of the month of the cutoff is marked as deleted. */
function clickhousePrune(beforeMs: number): { readonly months: string; readonly rest: string } {
  const cutoff = new Date(beforeMs)
  const month = cutoff.getUTCFullYear() * 100 + cutoff.getUTCMonth() + 1
  return {
    months: `SELECT DISTINCT partition FROM system.parts
WHERE database = currentDatabase() AND table = 'sequences' AND active AND toUInt32OrZero(partition) < ${month}`,
    rest: `DELETE FROM sequences WHERE timestamp < ${Math.trunc(beforeMs)}`,
  }
}
