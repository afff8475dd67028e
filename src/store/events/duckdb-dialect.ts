/** The SQL of DuckDB: the table, and where its dialect differs. */
import { type ColumnType, columnNames, columns } from "./event.ts"
import type { Dialect } from "./engine.ts"

export const duckdbDialect: Dialect = {
  parameter: (name) => `$${name}`,
  // A row that is already there is never inserted, so there is nothing to merge.
  table: "sequences",
  ending: "",
  // The element at floor(q * n) from below is the one at ceil((1 - q) * n) - 1 from above, which is what the discrete
  // quantile takes; a negative argument counts from above.
  percentile: (q, column, exact) =>
    exact ? `quantile_disc(${column}, -${q === 0.5 ? "0.5" : "0.05"})` : `approx_quantile(${column}, ${q})`,
  percentiles: (column, exact) =>
    exact ? `quantile_disc(${column}, [-0.5, -0.05])` : `approx_quantile(${column}, [0.5, 0.95])`,
  quotient: (dividend, divisor) => `((${dividend}) // ${divisor})`,
  unnest: (list) => `unnest(${list})`,
  orBlank: (list) => `CASE WHEN len(${list}) = 0 THEN [''] ELSE ${list} END`,
  isOneOf: (value, list) => `list_contains(${list}, ${value})`,
  positionIn: (value, list) => `coalesce(list_position(${list}, ${value}), 0)`,
  hasAny: (list, other) => `list_has_any(${list}, ${other})`,
  isEmpty: (list) => `len(${list}) = 0`,
  dayNumber: (timestamp) => `(${timestamp} // 86400000)`,
}

const types: Record<ColumnType, string> = {
  text: "VARCHAR NOT NULL",
  name: "VARCHAR NOT NULL",
  texts: "VARCHAR[] NOT NULL",
  count: "UINTEGER NOT NULL",
  instant: "BIGINT NOT NULL",
  ticks: "BIGINT NOT NULL",
}

const table = (create: string): string =>
  `${create} (${columnNames.map((column) => `${column} ${types[columns[column]]}`).join(", ")})`

export const duckdbSchema = table("CREATE TABLE IF NOT EXISTS sequences")
/** Where the rows of an insert stand before it is known which are new; made anew, for deleted rows keep their memory. */
export const duckdbIncoming = table("CREATE OR REPLACE TEMP TABLE incoming")
