/** The events in DuckDB: one file, changed in transactions, read while it is written. */
import { rm } from "node:fs/promises"
import { availableParallelism, totalmem } from "node:os"
import {
  BIGINT,
  DOUBLE,
  DuckDBDataChunk,
  DuckDBInstance,
  LIST,
  UINTEGER,
  VARCHAR,
  listValue,
  type DuckDBAppender,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from "@duckdb/node-api"
import type { SqlRow } from "../sql.ts"
import {
  type EventEngine,
  EventEngineError,
  type Insertion,
  type Statement,
  type Values,
  statementMaxMs,
  type Dialect,
} from "./engine.ts"
import {
  type ColumnType,
  type EventRow,
  columnNames,
  columns,
  addedColumnNames,
  addedColumns,
  firstColumnNames,
  stageFields,
} from "./event.ts"

/** Statements that read at the same time; more wait. */
const readersMax = 2
const rowsPerChunk = 2048
const mebibyte = 1024 * 1024
const memoryBytesMax = 2048 * mebibyte
/** Of the log of changes, before it is made part of the file. Each time the unfinished row group is compressed anew. */
const logMebibytesMax = 64

export async function openDuckdb(file: string): Promise<EventEngine> {
  // In a container the limit of its control group counts, not the memory of the machine.
  const presentBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  const memoryBytes = Math.min(memoryBytesMax, presentBytes / 4)
  const instance = await DuckDBInstance.create(file, {
    threads: String(Math.max(1, availableParallelism())),
    memory_limit: `${Math.floor(memoryBytes / mebibyte)}MiB`,
    checkpoint_threshold: `${logMebibytesMax}MiB`,
    // Nothing is fetched from elsewhere, and no statement reads files that it does not name.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  })
  const writer = await instance.connect()
  await createTable(writer)
  const readers = await Promise.all(Array.from({ length: readersMax }, () => instance.connect()))
  return new DuckdbEngine(instance, writer, readers)
}

async function createTable(writer: DuckDBConnection): Promise<void> {
  const present = await writer.runAndReadAll(duckdbColumns)
  // The statement gives one column, of names.
  const names = new Set(present.getColumnsJS()[0] as readonly string[] | undefined)
  const changes = duckdbChanges(names)
  if (changes.length === 0) return
  await writer.run("BEGIN TRANSACTION")
  for (const statement of changes) await writer.run(statement)
  await writer.run("COMMIT")
}

class DuckdbEngine implements EventEngine {
  readonly dialect = duckdbDialect
  readonly #instance: DuckDBInstance
  readonly #writer: DuckDBConnection
  readonly #readers: Line[]
  #writing: Promise<unknown> = Promise.resolve()

  constructor(instance: DuckDBInstance, writer: DuckDBConnection, readers: readonly DuckDBConnection[]) {
    this.#instance = instance
    this.#writer = writer
    this.#readers = readers.map((connection) => ({ connection, waiting: 0, tail: Promise.resolve() }))
  }

  async query({ text, values }: Statement): Promise<SqlRow[]> {
    return await this.#read(async (connection) => {
      const result = await connection.runAndReadAll(text, bound(values), typesOf(values))
      return result.getRowObjectsJS().map(plain)
    })
  }

  insert(rows: readonly EventRow[], { areNew }: Insertion): Promise<void> {
    return this.#alone(() =>
      this.#transact(async () => await (areNew ? this.#appendSorted(rows) : this.#insertMissing(rows))),
    )
  }

  prune(beforeMs: number): Promise<void> {
    return this.#alone(async () => {
      await this.#writer.run("DELETE FROM sequences WHERE timestamp < $before", { before: BigInt(beforeMs) })
      await this.#writer.run("CHECKPOINT")
    })
  }

  async writeParquet({ text, values }: Statement, file: string): Promise<void> {
    await rm(file, { force: true })
    await this.#read(async (connection) => {
      const target = `'${file.replaceAll("'", "''")}'`
      await connection.run(
        `COPY (${text}) TO ${target} (FORMAT parquet, COMPRESSION zstd)`,
        bound(values),
        typesOf(values),
      )
    })
  }

  /** With the writer, so that no batch of events is half there. */
  async copy(file: string): Promise<void> {
    await rm(file, { force: true })
    await this.#alone(async () => {
      const found = await this.#writer.runAndReadAll("SELECT current_database()")
      const own = String(found.getRows()[0]?.[0])
      await this.#writer.run(`ATTACH '${file.replaceAll("'", "''")}' AS backup_copy`)
      try {
        await this.#writer.run(`COPY FROM DATABASE "${own}" TO backup_copy`)
      } finally {
        await this.#writer.run("DETACH backup_copy")
      }
    })
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#writing, ...this.#readers.map(({ tail }) => tail)])
    for (const { connection } of this.#readers) connection.closeSync()
    this.#writer.closeSync()
    this.#instance.closeSync()
  }

  async #appendSorted(rows: readonly EventRow[]): Promise<void> {
    const sorted = rows.toSorted((a, b) => a.timestamp - b.timestamp)
    append(await this.#writer.createAppender("sequences"), sorted)
  }

  /** Only rows near the given ones in time can be the same, and time is what the file is sorted by. */
  async #insertMissing(rows: readonly EventRow[]): Promise<void> {
    await this.#writer.run(duckdbIncoming)
    append(await this.#writer.createAppender("incoming", null, "temp"), rows)
    await this.#writer.run(`
INSERT INTO sequences
SELECT * FROM incoming WHERE seq_id NOT IN (
  SELECT seq_id FROM sequences
  WHERE timestamp BETWEEN (SELECT min(timestamp) FROM incoming) AND (SELECT max(timestamp) FROM incoming))
ORDER BY timestamp`)
  }

  async #transact(work: () => Promise<void>): Promise<void> {
    await this.#writer.run("BEGIN")
    try {
      await work()
      await this.#writer.run("COMMIT")
    } catch (error) {
      await this.#writer.run("ROLLBACK").catch(() => undefined)
      throw error
    }
  }

  #alone(work: () => Promise<void>): Promise<void> {
    const turn = this.#writing.then(work)
    this.#writing = turn.catch(() => undefined)
    return turn
  }

  /** Takes the line with the fewest waiting; a statement that runs too long is stopped. */
  async #read<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    const line = this.#readers.toSorted((a, b) => a.waiting - b.waiting)[0]
    if (!line) throw new EventEngineError("Cannot read the events: there is no connection")
    line.waiting++
    const turn = line.tail.then(async () => await stopping(line.connection, work))
    line.tail = turn.then(
      () => undefined,
      () => undefined,
    )
    try {
      return await turn
    } finally {
      line.waiting--
    }
  }
}

interface Line {
  readonly connection: DuckDBConnection
  waiting: number
  tail: Promise<void>
}

async function stopping<Result>(
  connection: DuckDBConnection,
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const timer = setTimeout(() => connection.interrupt(), statementMaxMs)
  try {
    return await work(connection)
  } finally {
    clearTimeout(timer)
  }
}

function bound(values: Values): Record<string, DuckDBValue> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (typeof value === "number") return [name, BigInt(value)]
      return [name, typeof value === "string" ? value : listValue([...value])]
    }),
  )
}

function typesOf(values: Values): Record<string, DuckDBType> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (typeof value === "number") return [name, BIGINT]
      return [name, typeof value === "string" ? VARCHAR : LIST(VARCHAR)]
    }),
  )
}

function plain(row: SqlRow): SqlRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(plainCell) : plainCell(value),
    ]),
  )
}

const plainCell = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value)

const duckdbTypes: Record<ColumnType, DuckDBType> = {
  text: VARCHAR,
  name: VARCHAR,
  texts: LIST(VARCHAR),
  count: UINTEGER,
  instant: BIGINT,
  ticks: BIGINT,
  "known count": UINTEGER,
  "known ms": DOUBLE,
}
const chunkTypes = columnNames.map((name) => duckdbTypes[columns[name]])

/** An appender that is left with rows in it writes them when it is collected, after the transaction: it is emptied. */
function append(appender: DuckDBAppender, rows: readonly EventRow[]): void {
  try {
    for (let start = 0; start < rows.length; start += rowsPerChunk)
      appender.appendDataChunk(chunkOf(rows.slice(start, start + rowsPerChunk)))
    appender.closeSync()
  } catch (error) {
    appender.clear()
    throw error
  }
}

/** Values go to the vectors one by one: a list of each column would be garbage at once. */
function chunkOf(rows: readonly EventRow[]): DuckDBDataChunk {
  const chunk = DuckDBDataChunk.create(chunkTypes, rows.length)
  for (const [index, name] of columnNames.entries()) {
    const vector = chunk.getColumnVector(index)
    const convert = columns[name] === "instant" ? instantOf : valueOf
    rows.forEach((row, at) => vector.setItem(at, convert(row[name])))
    vector.flush()
  }
  return chunk
}

type Cell = EventRow[keyof EventRow]

const emptyList = listValue([])

function valueOf(cell: Cell): DuckDBValue {
  if (cell === null || typeof cell !== "object") return cell
  return cell.length === 0 ? emptyList : listValue(cell)
}

const instantOf = (cell: Cell): DuckDBValue => (typeof cell === "number" ? BigInt(cell) : valueOf(cell))

const stageTypes = { text: "VARCHAR", number: "DOUBLE" }
const duckdbStage = Object.entries(stageFields).map(([name, type]) => `"${name}":"${stageTypes[type]}"`)
const duckdbStages = `from_json(stages, '[{${duckdbStage.join(",")}}]')`

const duckdbDialect: Dialect = {
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
  hasAll: (list, other) => `list_has_all(${list}, ${other})`,
  isEmpty: (list) => `len(${list}) = 0`,
  afterPrefix: (list, prefix) =>
    `coalesce(substr(list_filter(${list}, lambda one: starts_with(one, ${prefix}))[1], len(${prefix}) + 1), '')`,
  dayNumber: (timestamp) => `(${timestamp} // 86400000)`,
  stages: duckdbStages,
  stageModels: `list_transform(${duckdbStages}, lambda one: one.model)`,
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
const isAdded = (name: ColumnName): boolean => Object.hasOwn(addedColumns, name)

const allColumnNames: readonly ColumnName[] = [...firstColumnNames, ...addedColumnNames]

const duckdbTable = `CREATE TABLE sequences (
  ${allColumnNames.map(declared).join(",\n  ")})`

/** The columns that a table has; none where there is no table. */
const duckdbColumns =
  "SELECT column_name AS name FROM duckdb_columns() WHERE table_name = 'sequences' AND NOT internal"

/**
 * What makes the table as it is now of one with the given columns, in one transaction. A table of an earlier version is
 * written anew, not altered: DuckDB cannot read its own log again when the process dies after an ALTER.
 */
function duckdbChanges(present: ReadonlySet<string>): readonly string[] {
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
const duckdbIncoming = "CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM sequences LIMIT 0"
