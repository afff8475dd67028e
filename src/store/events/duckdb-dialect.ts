/** The SQL of DuckDB: the table, and where its dialect differs. */
import { type ColumnType, type EventRow, addedColumnNames, columns, firstColumnNames } from "./event.ts"
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
  contains: (list, value) => `list_contains(${list}, ${value})`,
  hasAny: (list, other) => `list_has_any(${list}, ${other})`,
  isEmpty: (list) => `len(${list}) = 0`,
  afterPrefix: (list, prefix) =>
    `coalesce(substr(list_filter(${list}, lambda one: starts_with(one, ${prefix}))[1], len(${prefix}) + 1), '')`,
  dayNumber: (timestamp) => `(${timestamp} // 86400000)`,
}

const types: Record<ColumnType, string> = {
  text: "VARCHAR",
  name: "VARCHAR",
  texts: "VARCHAR[]",
  count: "UINTEGER",
  instant: "BIGINT",
  ticks: "BIGINT",
  "known count": "UINTEGER",
  "known ms": "DOUBLE",
}

const defaults: Partial<Record<ColumnType, string>> = { text: "''", name: "''", texts: "[]" }

type ColumnName = keyof EventRow

const declared = (name: ColumnName): string => {
  const type = columns[name]
  return isAdded(name)
    ? `${name} ${types[type]} DEFAULT ${defaultOf(type)}`
    : `${name} ${types[type]} NOT NULL`
}
const defaultOf = (type: ColumnType): string => defaults[type] ?? "NULL"
const isAdded = (name: ColumnName): boolean => (addedColumnNames as readonly string[]).includes(name)

const allColumnNames: readonly ColumnName[] = [...firstColumnNames, ...addedColumnNames]

const duckdbTable = `CREATE TABLE sequences (
  ${allColumnNames.map(declared).join(",\n  ")})`

/** The columns that a table has; none where there is no table. */
export const duckdbColumns =
  "SELECT column_name AS name FROM duckdb_columns() WHERE table_name = 'sequences' AND NOT internal"

/**
 * What makes the table as it is now of one with the given columns, in one transaction. A table of an earlier version is
 * written anew, not altered: DuckDB cannot read its own log again when the process dies after an ALTER.
 */
export function duckdbChanges(present: ReadonlySet<string>): readonly string[] {
  if (present.size === 0) return [duckdbTable]
  if (allColumnNames.every((name) => present.has(name))) return []
  const values = allColumnNames.map((name) =>
    present.has(name) ? name : `${defaultOf(columns[name])} AS ${name}`,
  )
  return [
    "CREATE OR REPLACE TEMP TABLE earlier AS SELECT * FROM sequences",
    "DROP TABLE sequences",
    duckdbTable,
    `INSERT INTO sequences (${allColumnNames.join(", ")}) SELECT ${values.join(", ")} FROM earlier`,
    "DROP TABLE earlier",
  ]
}

/** Where the rows of an insert stand before it is known which are new; made anew, for deleted rows keep their memory. */
export const duckdbIncoming = "CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM sequences LIMIT 0"
