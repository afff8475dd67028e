/**
 * Arrays and unions that cost no more than they must: an array's length is checked before its items, its first wrong
 * item ends the check, and a union asks only the member that the value says it is. Zod's own run every item against
 * every member and collect every issue, which for a hostile body takes minutes.
 */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { partsMax } from "./limits.ts"

/* oxlint-disable no-underscore-dangle -- `_zod` is where zod lets a schema be extended */

interface ArrayBounds {
  readonly min?: number
  readonly max: number
}

/** Further methods that return a new schema (`min`, `meta`, ...) lose the bounds: wrap it, do not refine it. */
export function boundedArray<Item extends z.ZodType>(
  item: Item,
  { min, max }: ArrayBounds,
): z.ZodArray<Item> {
  const limited = z.array(item).max(max)
  const schema = min === undefined ? limited : limited.min(min)
  const internals = schema._zod
  const parse = internals.parse.bind(internals)
  internals.parse = (payload, context) => {
    const input: unknown = payload.value
    if (!Array.isArray(input)) return parse(payload, context)
    // The check of the length follows and refuses it.
    if (input.length > max) return payload
    const output: unknown[] = Array.from({ length: input.length })
    payload.value = output as typeof payload.value
    for (const [index, value] of input.entries()) {
      const result = item._zod.run({ value, issues: [] }, context)
      if (result instanceof Promise) throw new z.core.$ZodAsyncError()
      if (result.issues.length > 0) {
        payload.issues.push(...z.core.util.prefixIssues(index, result.issues))
        return payload
      }
      output[index] = result.value
    }
    return payload
  }
  return schema
}

/** `select` names the member that a value is to be checked against; null where it is none of them. */
export function selectedUnion<const Members extends readonly [z.ZodType, ...z.ZodType[]]>(
  members: Members,
  select: (value: unknown) => Members[number] | null,
  error: string,
): z.ZodUnion<Members> {
  const schema = z.union(members, { error })
  const internals = schema._zod
  const parse: typeof internals.parse = (payload, context) => {
    const member = select(payload.value)
    if (member) return member._zod.run(payload, context)
    payload.issues.push({ code: "invalid_union", errors: [], input: payload.value, inst: schema })
    return payload
  }
  internals.parse = parse
  internals.run = parse
  return schema
}

/** `meta` would return a copy without the bounds. */
export function described<Schema extends z.ZodType>(schema: Schema, description: string): Schema {
  z.globalRegistry.add(schema, { description })
  return schema
}

/** The `type` of an object; null for anything else. */
export function typeOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null
  return "type" in value ? value.type : undefined
}

/** A string, or parts that are told apart by their type. */
export function textOrParts<const Parts extends readonly [TypedPart, ...TypedPart[]]>(
  parts: Parts,
  error: string,
): z.ZodUnion<readonly [z.ZodString, z.ZodArray<z.ZodUnion<Parts>>]> {
  const byType = new Map<unknown, Parts[number]>(parts.map((part) => [part.shape.type.value, part]))
  const part = selectedUnion(parts, (value) => byType.get(typeOf(value)) ?? null, error)
  const text = bodyText()
  const list = boundedArray(part, { max: partsMax })
  return selectedUnion(
    [text, list],
    (value) => (Array.isArray(value) ? list : typeof value === "string" ? text : null),
    error,
  )
}

type TypedPart = z.ZodObject<{ readonly type: z.ZodLiteral<string> }>
