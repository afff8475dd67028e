/**
 * Reads a request by the contract's schema, from the value of the lossless reader. Refusals come in the order of the wire: what a thing
 * is, fields that it does not have, how many entries it holds, then the entries, and the rules about all of them last.
 */
/* oxlint-disable no-underscore-dangle -- `_zod` is where zod shows a schema to libraries */
import { z } from "zod"
import {
  checkJsonBounds,
  depthOf,
  isList,
  JsonError,
  JsonNumber,
  JsonObject,
  type JsonValue,
  printJson,
  readJson,
  shown,
} from "../../base/json.ts"
import { LIMITS, type WireRule, wireRegistry } from "../../contract/decisions.ts"
import { Fault, type FaultCode } from "../../contract/errors.ts"

export interface ReadOptions {
  /** Take null instructions and criteria as empty ones, for clients that send them; a null state stays refused. */
  readonly nullDescriptions: boolean
}

type Read = (value: JsonValue | undefined, path: string, options: ReadOptions) => unknown

/** The body, its questions, one of them and its criteria stand around the deepest description. */
const envelopeDepth = 4

/** Reads a body that must be one JSON object; throws Fault `body_too_large`, `invalid_json` or `invalid_request`. */
export function readBody(body: Uint8Array): JsonObject {
  if (body.byteLength > LIMITS.bodyBytesMax) {
    throw new Fault(
      "body_too_large",
      `Cannot read the body: it has ${body.byteLength} bytes; at most ${LIMITS.bodyBytesMax} are accepted`,
    )
  }
  return asObject(parseBody(body), "the body")
}

/** Of states and conversations of 4 MiB: what is read takes some 100 bytes of memory for each. The depth is the reader's. */
const bodyBounds = { ...LIMITS, depthMax: Infinity }

function parseBody(body: Uint8Array): JsonValue {
  try {
    // Each takes a byte.
    if (body.byteLength > bodyBounds.containersMax) checkJsonBounds(body, bodyBounds)
    return readJson(body, LIMITS.jsonDepthMax + envelopeDepth)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new Fault("invalid_json", `Cannot read the body: ${cause.message}; send one JSON object in UTF-8`, {
      cause,
    })
  }
}

/** The output of the schema, but for two things: records are maps in the order of their keys, and what is rendered is text. */
export function readAs(
  schema: z.core.$ZodType,
  body: JsonObject,
  options: ReadOptions = { nullDescriptions: false },
): unknown {
  return readerOf(schema)(body, "", options)
}

const readers = new WeakMap<z.core.$ZodType, Read>()

function readerOf(schema: z.core.$ZodType): Read {
  const made = readers.get(schema) ?? createReader(schema)
  readers.set(schema, made)
  return made
}

function createReader(schema: z.core.$ZodType): Read {
  if (schema instanceof z.core.$ZodOptional) {
    const read = readerOf(schema._zod.def.innerType)
    return (value, path, options) => (value === undefined ? undefined : read(value, path, options))
  }
  const { rules = [], rendered, wanted } = wireRegistry.get(schema) ?? {}
  // A rule is about the output of its schema, which is what is read.
  const known = rules as readonly WireRule<unknown>[]
  const first = known.filter(({ isFirst }) => isFirst)
  const last = known.filter(({ isFirst }) => !isFirst)
  const kinds = kindsOf(schema)
  const read = rendered ? renderText : readerWithin(schema)
  return (value, path, options) => {
    if (value === null && rendered?.isNullable && options.nullDescriptions) return ""
    if (!kinds.has(kindOf(value))) throw wrong(path, value, wanted ?? namesOf(kinds))
    for (const rule of first) refuseBroken(rule, value, path)
    const output = read(value, path, options)
    for (const rule of last) refuseBroken(rule, output, path)
    return output
  }
}

function refuseBroken({ code, holds, found }: WireRule<unknown>, value: unknown, path: string): void {
  if (!holds(value)) throw refusal(code, `${path} ${found(value)}`)
}

/** Of values whose kind the schema takes. */
function readerWithin(schema: z.core.$ZodType): Read {
  const { withField } = wireRegistry.get(schema) ?? {}
  // Every schema is one of zod's own.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case "nullable": {
      const read = readerOf(def.innerType)
      return (value, path, options) => (value === null ? null : read(value, path, options))
    }
    case "union":
      if (schema instanceof z.core.$ZodDiscriminatedUnion) return variantReader(schema)
      return withField === undefined ? unionReader(def.options) : eitherReader(withField, def.options)
    case "array":
      return listReader(readerOf(def.element), sizesOf(schema))
    case "record":
      return recordReader(readerOf(def.keyType), readerOf(def.valueType))
    case "object":
      return objectReader(def.shape)
    default:
      return (value) => value
  }
}

function unionReader(options: readonly z.core.$ZodType[]): Read {
  const byKind = new Map(
    options.flatMap((option) => [...kindsOf(option)].map((kind) => [kind, readerOf(option)] as const)),
  )
  return (value, path, options) => byKind.get(kindOf(value))?.(value, path, options)
}

function eitherReader(field: string, [having, lacking]: readonly z.core.$ZodType[]): Read {
  if (!having || !lacking)
    throw new Error("Cannot read by the schema: one of two schemas is chosen by a field")
  const [readHaving, readLacking] = [readerOf(having), readerOf(lacking)]
  return (value, path, options) =>
    (asObject(value, path).has(field) ? readHaving : readLacking)(value, path, options)
}

/** By the field that says which variant an object is. */
function variantReader(union: z.core.$ZodDiscriminatedUnion): Read {
  const { def } = union._zod
  const field = def.discriminator
  const variants = new Map(
    def.options.flatMap((option) =>
      [...(option._zod.propValues?.[field] ?? [])].map((name) => [name, readerOf(option)] as const),
    ),
  )
  const accepted = [...variants.keys()].filter((name) => name !== undefined).map(String)
  const { unsupported } = wireRegistry.get(union) ?? {}
  return (value, path, options) => {
    const given = asObject(value, path).get(field)
    const name =
      given === undefined && variants.has(undefined) ? given : asString(given, fieldPath(path, field))
    const read = variants.get(name)
    if (!read) throw otherName({ path, field, name: name ?? "" }, accepted, unsupported)
    return read(value, path, options)
  }
}

function listReader(read: Read, [min, max]: readonly [number, number]): Read {
  return (value, path, options) => {
    if (!isList(value)) throw wrong(path, value, "a list")
    if (value.length < min || value.length > max)
      throw refusal("invalid_request", `${path} has ${value.length} entries; it must have ${min} to ${max}`)
    return value.map((member, at) => read(member, `${path}[${at}]`, options))
  }
}

function recordReader(readKey: Read, read: Read): Read {
  return (value, path, options) => {
    const entries = new Map<string, unknown>()
    for (const [key, member] of asObject(value, path)) {
      const at = entryPath(path, key)
      readKey(key, `the key of ${at}`, options)
      entries.set(key, read(member, at, options))
    }
    return entries
  }
}

/** What a thing is comes before what it may hold, so that another kind of thing is called unsupported. */
function objectReader(shape: Readonly<Record<string, z.core.$ZodType>>): Read {
  const known = Object.keys(shape)
  const names = Object.entries(shape).flatMap(([field, schema]) => namesIn(field, schema))
  const others = Object.entries(shape).filter(([field]) => !names.some((name) => name.field === field))
  const members = others.map(([field, schema]) => ({ field, read: readerOf(schema) }))
  return (value, path, options) => {
    const object = asObject(value, path)
    const output: Record<string, unknown> = {}
    for (const { field, isRequired, accepted, unsupported } of names) {
      if (!object.has(field) && !(isRequired && field === "type")) continue
      const name = asString(object.get(field), fieldPath(path, field))
      if (name !== accepted) throw otherName({ path, field, name }, [accepted], unsupported)
      output[field] = name
    }
    refuseUnknownFields(object, known, path)
    for (const { field, isRequired, accepted } of names)
      if (isRequired && !object.has(field)) throw wrong(fieldPath(path, field), undefined, shown(accepted))
    for (const { field, read } of members)
      output[field] = read(object.get(field), fieldPath(path, field), options)
    return output
  }
}

interface LiteralName {
  readonly field: string
  readonly isRequired: boolean
  readonly accepted: string
  readonly unsupported: string | undefined
}

/** A field of one value, which says what the object is. */
function namesIn(field: string, schema: z.core.$ZodType): LiteralName[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === "optional")
    return namesIn(field, def.innerType).map((name) => ({ ...name, isRequired: false }))
  if (def.type !== "literal") return []
  const { unsupported } = wireRegistry.get(schema) ?? {}
  return [{ field, isRequired: true, accepted: String(def.values[0]), unsupported }]
}

/** Text as it is; an object or a list as compact JSON with its keys in the order given. */
function renderText(value: JsonValue | undefined, path: string): string {
  if (typeof value === "string" || value === undefined) return value ?? ""
  if (depthOf(value) > LIMITS.jsonDepthMax) {
    throw new Fault(
      "invalid_json",
      `Cannot read the request: ${path} is nested more than ${LIMITS.jsonDepthMax} levels deep; make it flatter`,
    )
  }
  return printJson(value)
}

const sizesOf = ({ _zod: { def } }: z.core.$ZodType): readonly [number, number] => {
  const sizes = (def.checks ?? []).map((check) => check._zod.def as { minimum?: number; maximum?: number })
  return [
    Math.max(0, ...sizes.map(({ minimum = 0 }) => minimum)),
    Math.min(...sizes.map(({ maximum = Infinity }) => maximum)),
  ]
}

type Kind = "missing" | "null" | "a string" | "a boolean" | "a number" | "an object" | "a list"

function kindOf(value: JsonValue | undefined): Kind {
  if (value === undefined) return "missing"
  if (value === null) return "null"
  if (typeof value === "string") return "a string"
  if (typeof value === "boolean") return "a boolean"
  if (value instanceof JsonNumber) return "a number"
  return value instanceof JsonObject ? "an object" : "a list"
}

/** The kinds of values that a schema may take. */
function kindsOf(schema: z.core.$ZodType): ReadonlySet<Kind> {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case "nullable":
      return new Set([...kindsOf(def.innerType), "null"])
    case "union":
      return new Set(def.options.flatMap((option) => [...kindsOf(option)]))
    case "array":
      return new Set(["a list"])
    case "record":
    case "object":
      return new Set(["an object"])
    case "string":
      return new Set(["a string"])
    case "boolean":
      return new Set(["a boolean"])
    case "unknown":
      return new Set(["missing", "null", "a string", "a boolean", "a number", "an object", "a list"])
    default:
      throw new Error(`Cannot read by the schema: ${def.type} is not among what requests are made of`)
  }
}

const namesOf = (kinds: ReadonlySet<Kind>): string =>
  [...kinds].filter((kind) => kind !== "missing").join(" or ")

/** The path of a field that the contract names. */
const fieldPath = (path: string, field: string): string => (path === "" ? field : `${path}.${field}`)

/** The path of an entry whose key the caller chose. */
export const entryPath = (path: string, key: string): string => `${path}[${shown(key)}]`

function asObject(value: JsonValue | undefined, path: string): JsonObject {
  if (value instanceof JsonObject) return value
  throw wrong(path, value, "an object")
}

function asString(value: JsonValue | undefined, path: string): string {
  if (typeof value === "string") return value
  throw wrong(path, value, "a string")
}

function otherName(
  { path, field, name }: { path: string; field: string; name: string },
  accepted: readonly string[],
  unsupported?: string,
): Fault {
  if (unsupported === undefined)
    return wrongly(`${fieldPath(path, field)} is ${shown(name)}`, accepted.map(shown).join(" or "))
  const found = field === "type" ? "is of type" : `has the ${field}`
  return refusal("unsupported_input", `${path} ${found} ${shown(name)}; ${unsupported}`)
}

/** Throws Fault `unknown_field` when an object has a key that is not among `known`. */
function refuseUnknownFields(object: JsonObject, known: readonly string[], path: string): void {
  for (const key of object.keys()) {
    if (known.includes(key)) continue
    throw new Fault(
      "unknown_field",
      `Cannot read the request: ${path || "the body"} has the unknown field ${shown(key)}; its fields are ${known.join(", ")}`,
    )
  }
}

const wrong = (path: string, value: JsonValue | undefined, wanted: string): Fault =>
  wrongly(`${path} is ${kindOf(value)}`, wanted)

const wrongly = (found: string, wanted: string): Fault =>
  refusal("invalid_request", `${found}; it must be ${wanted}`)

const refusal = (code: FaultCode, found: string): Fault =>
  new Fault(code, `Cannot ${code === "invalid_request" ? "read the request" : "classify"}: ${found}`)
