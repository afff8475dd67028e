/** Fields of a record as they stand on the wire: names in snake case, times as text, counts as numbers. */
import type { RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? Rest extends Uncapitalize<Rest>
    ? `${First}${SnakeCase<Rest>}`
    : `${First}_${SnakeCase<Uncapitalize<Rest>>}`
  : Name

type WireValue<Value> = Value extends Date
  ? string
  : Value extends bigint
    ? number
    : Value extends readonly (infer Member)[]
      ? Member[]
      : Value

type Wire<Item, Field extends keyof Item & string> = {
  [Name in Field as SnakeCase<Name>]: WireValue<Item[Name]>
}

export function toWire<Item extends object, Field extends keyof Item & string>(
  item: Item,
  ...fields: readonly Field[]
): Wire<Item, Field> {
  const entries = fields.map((field) => [snakeCase(field), wireValue(item[field])])
  // Each field has become the one that its type names.
  return Object.fromEntries(entries) as Wire<Item, Field>
}

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function wireValue(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (typeof value === "bigint") return Number(value)
  return Array.isArray(value) ? [...value] : value
}

/** 412 when If-Match names another version; a request without the header takes what is there. */
export function checkVersion(request: RequestFacts, version: bigint): void {
  const given = request.header("if-match")
  if (given === null || given.trim() === "*") return
  const named = given.split(",").map((tag) => tag.trim().replace(/^W\//, "").replaceAll('"', ""))
  if (named.includes(String(version))) return
  throw new Fault(
    "precondition_failed",
    "Cannot change the resource: it was changed since it was read; read it again and repeat",
  )
}

export const etag = (version: bigint): string => `"${version}"`
