/** The sizes that a schema may have, checked before anything is worked out from it. */
import { SchemaError } from "./budget.ts"

const BYTES_MAX = 256 * 1024
const DEPTH_MAX = 64
/** Objects, lists and values in them. */
const NODES_MAX = 20_000
const ENUM_VALUES_MAX = 5000
const TYPES_MAX = 7

/** Throws a `SchemaError`. Its own work ends at the first bound that is passed. */
export function checkBounds(schema: unknown): void {
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value: schema, depth: 1 }]
  let nodes = 0
  let bytes = 0
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, depth } = next
    if (++nodes > NODES_MAX) throw refuse(`it has more than ${NODES_MAX} parts`)
    if (typeof value === "string") bytes += value.length
    else if (typeof value === "object" && value !== null) {
      if (depth > DEPTH_MAX) throw refuse(`it is nested more than ${DEPTH_MAX} levels deep`)
      const entries = Array.isArray(value) ? value : Object.values(value)
      if (nodes + waiting.length + entries.length > NODES_MAX)
        throw refuse(`it has more than ${NODES_MAX} parts`)
      if (!Array.isArray(value)) {
        for (const key of Object.keys(value)) bytes += key.length
        checkLists(value as Record<string, unknown>)
      }
      for (const one of entries as unknown[]) waiting.push({ value: one, depth: depth + 1 })
    }
    if (bytes > BYTES_MAX) throw refuse(`it has more than ${BYTES_MAX} characters`)
  }
}

function checkLists(schema: Readonly<Record<string, unknown>>): void {
  const { enum: values, type } = schema
  if (Array.isArray(values) && values.length > ENUM_VALUES_MAX)
    throw refuse(`an enum has more than ${ENUM_VALUES_MAX} values`)
  if (Array.isArray(type) && type.length > TYPES_MAX) throw refuse(`a type has more than ${TYPES_MAX} names`)
}

const refuse = (why: string): SchemaError => new SchemaError(`Cannot use the schema: ${why}`)
