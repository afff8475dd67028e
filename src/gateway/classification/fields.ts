/** Reads the fields of a request body and says, with the path, what is wrong with one. */
import { LIMITS, fitsUtf8, utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import {
  JsonError,
  type JsonList,
  JsonNumber,
  JsonObject,
  type JsonValue,
  isList,
  readJson,
} from "../../base/json.ts"

/** The body, its questions, one of them and its criteria stand around the deepest description. */
const envelopeDepth = 4
const shownCharactersMax = 40

/** Reads a body that must be one JSON object; throws Fault `body_too_large`, `invalid_json` or `invalid_request`. */
export function readBody(body: Uint8Array): JsonObject {
  if (body.byteLength > LIMITS.bodyBytesMax) {
    throw new Fault(
      "body_too_large",
      `Cannot read the body: it has ${body.byteLength} bytes; at most ${LIMITS.bodyBytesMax} are accepted`,
    )
  }
  return asObject(readValue(body), "the body")
}

function readValue(body: Uint8Array): JsonValue {
  try {
    return readJson(body, LIMITS.jsonDepthMax + envelopeDepth)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new Fault("invalid_json", `Cannot read the body: ${cause.message}; send one JSON object in UTF-8`, {
      cause,
    })
  }
}

/** The path of a field that the contract names. */
export const fieldPath = (path: string, field: string): string => (path === "" ? field : `${path}.${field}`)

/** The path of an entry whose key the caller chose. */
export const entryPath = (path: string, key: string): string => `${path}[${shown(key)}]`

export function asObject(value: JsonValue | undefined, path: string): JsonObject {
  if (value instanceof JsonObject) return value
  throw wrong(path, value, "an object")
}

export function asList(value: JsonValue | undefined, path: string): JsonList {
  if (isList(value)) return value
  throw wrong(path, value, "a list")
}

export function asString(value: JsonValue | undefined, path: string): string {
  if (typeof value === "string") return value
  throw wrong(path, value, "a string")
}

/** Omitted and null both mean none. */
export function asOptionalString(value: JsonValue | undefined, path: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === "string") return value
  throw wrong(path, value, "a string or null")
}

/** One of the names in `accepted`; the cast of the search is undone by what it finds. */
export function asOneOf<Name extends string>(
  value: JsonValue | undefined,
  accepted: readonly Name[],
  path: string,
): Name {
  const name = asString(value, path)
  const found = accepted.find((candidate) => candidate === name)
  if (found !== undefined) return found
  throw invalid(`${path} is ${shown(name)}`, `it must be ${accepted.map((each) => shown(each)).join(" or ")}`)
}

/** Throws Fault `unknown_field` when an object has a key that is not among `known`. */
export function refuseUnknownFields(object: JsonObject, known: readonly string[], path: string): void {
  let unknown: string | undefined
  for (const key of object.keys()) if (!known.includes(key)) unknown ??= key
  if (unknown === undefined) return
  const where = path === "" ? "the body" : path
  throw new Fault(
    "unknown_field",
    `Cannot read the request: ${where} has the unknown field ${shown(unknown)}; its fields are ${known.join(", ")}`,
  )
}

/** Throws Fault `invalid_request` when a count is outside its bounds; `what` is plural. */
export function refuseCountOutside(count: number, bounds: readonly [number, number], what: string): void {
  const [min, max] = bounds
  if (count >= min && count <= max) return
  throw invalid(`${what} has ${count} entries`, `it must have ${min} to ${max}`)
}

/** Throws Fault `too_many_questions`; counted before any question is looked at. */
export function refuseTooManyQuestions(count: number): void {
  if (count <= LIMITS.questionsMax) return
  throw new Fault(
    "too_many_questions",
    `Cannot classify: there are ${count} questions; at most ${LIMITS.questionsMax} fit one request`,
  )
}

/** Throws Fault `invalid_request` when a name is too long. */
export function refuseLongName(name: string, bytesMax: number, path: string): void {
  if (fitsUtf8(name, bytesMax)) return
  throw invalid(`${path} has ${utf8Bytes(name)} bytes of UTF-8`, `at most ${bytesMax} are accepted`)
}

/** The Fault for a value of the wrong type. */
export const wrong = (path: string, value: JsonValue | undefined, wanted: string): Fault =>
  invalid(`${path} is ${kindOf(value)}`, `it must be ${wanted}`)

export const invalid = (found: string, wanted: string): Fault =>
  new Fault("invalid_request", `Cannot read the request: ${found}; ${wanted}`)

/** Quotes a piece of the request in a sentence, cut so that the sentence stays short. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text)

function kindOf(value: JsonValue | undefined): string {
  if (value === undefined) return "missing"
  if (value === null) return "null"
  if (typeof value === "string") return "a string"
  if (typeof value === "boolean") return "a boolean"
  if (value instanceof JsonNumber) return "a number"
  return value instanceof JsonObject ? "an object" : "a list"
}
