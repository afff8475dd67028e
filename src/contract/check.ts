/** Checks values by schemas within bounds: sizes before what they hold, and no more problems than a person would read. */
import { z } from "zod"
import { noteReadSize } from "./read-size.ts"

z.config({
  customError: ({ code, input }) => (code === "invalid_type" && input === undefined ? "missing" : undefined),
})

/* oxlint-disable no-underscore-dangle, typescript/unbound-method -- `_zod` is where zod shows a schema to libraries; its functions use no this */

/** Of those that an error tells. */
export const problemsMax = 10

/**
 * Of a body no larger all problems are found; of a larger one the first, so that a refusal costs no more than an acceptance.
 * Finding them all takes zod some 30 us for each value of a union.
 */
export const thoroughBytesMax = 4 * 1024

/** As `safeParse`, but for a large value it stops at the first problem. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  bytes: number,
): z.ZodSafeParseResult<z.output<Schema>> {
  noteReadSize(bytes)
  if (!bounded.has(schema)) {
    for (const { schema: inner } of schemasIn(schema)) if (inner instanceof z.ZodRecord) boundKeys(inner)
    bounded.add(schema)
  }
  return schema.safeParse(value, bytes <= thoroughBytesMax ? {} : stopEarly)
}

/** Of the parser's own context: what `validate` of zod sets, with which containers stop at their first problem. */
const stopEarly: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true }

/** Schemas whose records count their keys. */
const bounded = new WeakSet<z.core.$ZodType>()

/** A record of at most so many keys. */
export function recordOf<Keys extends z.core.$ZodRecordKey, Values extends z.ZodType>(
  keys: Keys,
  values: Values,
  keysMax: number,
): z.ZodRecord<Keys, Values> {
  return z.record(keys, values).meta({ maxProperties: keysMax })
}

/** No body is larger. */
const bodyBytesMax = 32 * 1024 * 1024

/** A text that only the body limits. */
export const bodyText = (): z.ZodString => z.string().max(bodyBytesMax)

/** zod counts the items of a list before it looks at them, but not the keys of a record. */
function boundKeys(schema: z.ZodRecord): void {
  const keysMax = sizeMax(schema)
  if (keysMax === null || bounded.has(schema)) return
  bounded.add(schema)
  const { parse, run } = schema._zod
  const counted: typeof parse = (payload, context) => {
    if (!hasMoreKeys(payload.value, keysMax)) return parse(payload, context)
    payload.issues.push({
      code: "custom",
      input: payload.value,
      inst: schema,
      message: `has more than ${keysMax} keys`,
      continue: false,
    })
    return payload
  }
  schema._zod.parse = counted
  // Without checks of its own, a schema runs as it parses.
  if (run === parse) schema._zod.run = counted
}

function hasMoreKeys(value: unknown, keysMax: number): boolean {
  if (typeof value !== "object" || value === null) return false
  let keys = 0
  for (const _ in value) if (++keys > keysMax) return true
  return false
}

/** The most characters of a string, items of a list or keys of a record; null where the schema does not say. */
export function sizeMax(schema: z.core.$ZodType): number | null {
  if (schema instanceof z.ZodRecord) {
    const { maxProperties } = schema.meta() ?? {}
    return typeof maxProperties === "number" ? maxProperties : null
  }
  const maxima = (schema._zod.def.checks ?? []).flatMap(({ _zod: { def } }) =>
    def.check === "max_length" && "maximum" in def && typeof def.maximum === "number" ? [def.maximum] : [],
  )
  return maxima.length > 0 ? Math.min(...maxima) : null
}

interface FoundSchema {
  readonly schema: z.core.$ZodType
  /** Fields by name, items as [], values of records as {}. */
  readonly path: string
}

/** The schema and all within it, each once. */
export function* schemasIn(
  root: z.core.$ZodType,
  path = "",
  seen = new Set<z.core.$ZodType>(),
): Generator<FoundSchema> {
  if (seen.has(root)) return
  seen.add(root)
  yield { schema: root, path }
  for (const [step, schema] of withinOf(root)) yield* schemasIn(schema, path + step, seen)
}

/** What a schema is made of, and the step to it. */
function withinOf(schema: z.core.$ZodType): (readonly [string, z.core.$ZodType])[] {
  // Every schema is one of zod's own.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case "object":
      return Object.entries(def.shape).map(([name, field]) => [`.${name}`, field] as const)
    case "array":
      return [["[]", def.element]]
    case "record":
      return [
        ["{key}", def.keyType],
        ["{}", def.valueType],
      ]
    case "tuple":
      return [...def.items, ...(def.rest ? [def.rest] : [])].map((item) => ["[]", item] as const)
    case "union":
      return def.options.map((option) => ["", option] as const)
    case "intersection":
      return [
        ["", def.left],
        ["", def.right],
      ]
    case "pipe":
      return [
        ["", def.in],
        ["", def.out],
      ]
    case "lazy":
      return [["", def.getter()]]
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
    case "nonoptional":
    case "readonly":
    case "catch":
      return [["", def.innerType]]
    default:
      return []
  }
}
