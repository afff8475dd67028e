/** The SQL port: one dialect (PostgreSQL), two implementations (PGlite in a worker, PostgreSQL through pg). */
import { Fault } from "../contract/errors.ts"

/**
 * bigint columns come back as bigint, numeric and date as string, timestamptz as Date, jsonb parsed, bytea as Uint8Array.
 * As a parameter, a list is a PostgreSQL array and any other plain object is JSON; a JSON list must be passed as JSON text.
 */
export type SqlValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | Uint8Array
  | readonly string[]
  | object

/** As the driver gave it: shapes read it (rows.ts). */
export type SqlRow = Readonly<Record<string, unknown>>

export interface Sql {
  /** Runs one statement with $1-style parameters and answers its rows, whose values are not checked. */
  query(text: string, values?: readonly SqlValue[]): Promise<SqlRow[]>
}

export interface Transaction extends Sql {
  /** Runs several statements without parameters; for migrations only. */
  script(text: string): Promise<void>
}

export interface TransactionOptions {
  /**
   * "read committed" unless told: rows that are read and then changed must be locked (`FOR UPDATE`). PGlite runs one
   * transaction at a time and would hide a missing lock, PostgreSQL does not.
   */
  readonly isolation?: "read committed" | "serializable"
}

export interface Database extends Sql {
  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it throws. Serialization failures and
   * deadlocks are retried a bounded number of times, so `work` must have no effect outside the transaction. Inside
   * `work` only the handle it is given may be used: the database itself refuses, because on PGlite it would wait forever.
   */
  transaction<Result>(
    work: (sql: Transaction) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  /** Runs several statements without parameters, all or none; for migrations only. */
  script(text: string): Promise<void>
  /**
   * Calls `listener` with the payload of every NOTIFY on `channel`, until the returned function is called. What is sent
   * while a lost connection is replaced is not seen: a notification is a hint to look, never the only record.
   */
  listen(channel: string, listener: (payload: string) => void): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** When an outage may be over, as clients are told. */
const retryAfterMs = 5_000

/** The database cannot be reached or cannot work now. The statement may or may not have taken effect. */
export class StoreUnavailable extends Fault {
  override readonly name = "StoreUnavailable"

  constructor(sentence: string, options: { readonly cause?: unknown } = {}) {
    super("store_unavailable", sentence, { ...options, retryAfterMs })
  }
}

interface SqlErrorFields {
  /** The five-character SQLSTATE. */
  readonly state: string
  readonly constraint?: string | undefined
  readonly detail?: string | undefined
}

/** The database refused a statement: a broken constraint, or a mistake in the statement. */
export class SqlError extends Error {
  override readonly name = "SqlError"
  readonly state: string
  readonly constraint: string | undefined
  readonly detail: string | undefined

  constructor(sentence: string, fields: SqlErrorFields, cause?: unknown) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.state = fields.state
    this.constraint = fields.constraint
    this.detail = fields.detail
  }
}

/** Whether a statement failed because a row with the same unique value exists, optionally by one constraint only. */
export function isUniqueViolation(error: unknown, constraint?: string): error is SqlError {
  return (
    error instanceof SqlError &&
    error.state === "23505" &&
    (constraint ?? error.constraint) === error.constraint
  )
}

export type EncodedValue = string | number | bigint | boolean | null | Uint8Array | readonly string[]

/** Drivers disagree about objects and dates, so both get them as text. */
export function encodeValue(value: SqlValue): EncodedValue {
  if (value === null || typeof value !== "object") return value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return value
  // Every list of the port is a list of text; a JSON list is passed as text (see SqlValue).
  if (Array.isArray(value)) return value as readonly string[]
  return JSON.stringify(value)
}

type Parser = (text: string) => unknown

/** By type id (the oid of pg_type): the types whose default parsing differs between the drivers, or loses digits. */
export const valueParsers: Readonly<Record<number, Parser>> = {
  17: parseBytea,
  20: BigInt,
  1016: (text) => parseList(text).map(BigInt),
  1082: (text) => text,
  1114: (text) => text,
  1184: (text) => new Date(text),
  1231: parseList,
  1700: (text) => text,
}

function parseBytea(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.slice("\\x".length), "hex"))
}

/** Reads a list of numbers without nulls, `{1,2}`; lists of text are left to the drivers, which agree on them. */
function parseList(text: string): string[] {
  const inside = text.slice(1, -1)
  return inside === "" ? [] : inside.split(",")
}
