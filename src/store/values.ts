/** How JavaScript values travel to and from PostgreSQL, the same for both implementations of the port. */
import type { SqlValue } from "./sql.ts"

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
