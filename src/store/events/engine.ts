/** The port to whatever keeps the events: rows in, statements out. Implementations run in the analytics process. */
import type { SqlRow } from "../sql.ts"
import type { EventRow } from "./event.ts"

type Value = string | number | readonly string[]
/** What a statement's parameters stand for, by name; values never become part of its text. */
export type Values = Readonly<Record<string, Value>>

export interface Statement {
  readonly text: string
  readonly values: Values
}

export interface EventEngine {
  readonly dialect: Dialect
  /** Answers rows whose 64-bit integers are numbers: sums beyond 2^53 do not occur. */
  query(statement: Statement): Promise<SqlRow[]>
  /**
   * Keeps the rows; when it resolves they survive the end of every process. Rows whose organization, timestamp and
   * seq_id are already there are not counted twice, now or later.
   */
  insert(rows: readonly EventRow[], insertion: Insertion): Promise<void>
  /** Removes what began before. */
  prune(beforeMs: number): Promise<void>
  /** Writes what the statement answers to a new file. */
  writeParquet(statement: Statement, file: string): Promise<void>
  /** Writes all events to a new file of the same kind, while others go on; fails where a server keeps them. */
  copy(file: string): Promise<void>
  close(): Promise<void>
}

export interface Insertion {
  /** The same token stands for the same rows. */
  readonly token: string
  /** None of the rows is there already: an engine that would look for them need not. */
  readonly areNew: boolean
}

/** Where the engines' SQL differs. Everything else is one text for all. */
export interface Dialect {
  /** The text that stands for a parameter. */
  parameter(name: string, type: "Int64" | "String" | "Array(String)"): string
  /** The table, read so that no row counts twice. */
  readonly table: string
  /** What ends every statement that reads. */
  readonly ending: string
  /** `sorted[min(n - 1, floor(q * n))]`, or close to it where `exact` is false. */
  percentile(q: 0.5 | 0.95, column: string, exact: boolean): string
  /** The percentiles 0.5 and 0.95 as a list: together they cost what one costs. */
  percentiles(column: string, exact: boolean): string
  /** The whole number of times that `divisor` fits in a nonnegative `dividend`. */
  quotient(dividend: string, divisor: string): string
  /** One row for each element. */
  unnest(list: string): string
  /** A list of texts, or a list with one empty text where it is empty. */
  orBlank(list: string): string
  isOneOf(value: string, list: string): string
  /** Where the value stands in the list, counted from 1; 0 when it is not there. */
  positionIn(value: string, list: string): string
  /** Whether the list has the value; much quicker than to compare two lists. */
  contains(list: string, value: string): string
  /** Whether the lists have a value in common. */
  hasAny(list: string, other: string): string
  /** Whether the first list has every value of the other. */
  hasAll(list: string, other: string): string
  isEmpty(list: string): string
  /** What follows the prefix in the first text of the list that begins with it; empty when none does. */
  afterPrefix(list: string, prefix: string): string
  /** Days since 1970, of a timestamp in milliseconds. */
  dayNumber(timestamp: string): string
  /** The list of a request's stages, each with the fields of `stageFields`; for rows that have some. */
  readonly stages: string
  /** The list of their models. */
  readonly stageModels: string
}

export class EventEngineError extends Error {
  override readonly name = "EventEngineError"
}

/** A statement that runs longer is stopped. */
export const statementMaxMs = 30_000

export class StatementWriter {
  readonly #dialect: Dialect
  readonly #values: Record<string, Values[string]> = {}
  #count = 0

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  integer(value: number): string {
    return this.#dialect.parameter(this.#add(value), "Int64")
  }

  text(value: string): string {
    return this.#dialect.parameter(this.#add(value.toWellFormed()), "String")
  }

  texts(values: readonly string[]): string {
    return this.#dialect.parameter(this.#add(values.map((value) => value.toWellFormed())), "Array(String)")
  }

  finish(text: string): Statement {
    return { text: `${text}\n${this.#dialect.ending}`, values: this.#values }
  }

  #add(value: Values[string]): string {
    const name = `p${this.#count++}`
    this.#values[name] = value
    return name
  }
}
