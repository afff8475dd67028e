/** The SQL of ClickHouse, for chDB and for a server: the table, and where its dialect differs. */
import { type ColumnType, addedColumnNames, columns, firstColumnNames } from "./event.ts"
import { type Dialect, statementMaxMs } from "./engine.ts"

export const clickhouseDialect: Dialect = {
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
  isEmpty: (list) => `empty(${list})`,
  afterPrefix: (list, prefix) =>
    `substring(arrayFirst(one -> startsWith(one, ${prefix}), ${list}), length(${prefix}) + 1)`,
  dayNumber: (timestamp) => `intDiv(${timestamp}, 86400000)`,
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

export const clickhouseSchema: readonly string[] = [
  clickhouseTable,
  `ALTER TABLE sequences
  ${addedColumnNames.map((name) => `ADD COLUMN IF NOT EXISTS ${declared(name)}`).join(",\n  ")}`,
]

/** Whole months go at once; what is left of the month of the cutoff is marked as deleted. */
export function clickhousePrune(beforeMs: number): { readonly months: string; readonly rest: string } {
  const cutoff = new Date(beforeMs)
  const month = cutoff.getUTCFullYear() * 100 + cutoff.getUTCMonth() + 1
  return {
    months: `SELECT DISTINCT partition FROM system.parts
WHERE database = currentDatabase() AND table = 'sequences' AND active AND toUInt32OrZero(partition) < ${month}`,
    rest: `DELETE FROM sequences WHERE timestamp < ${Math.trunc(beforeMs)}`,
  }
}
