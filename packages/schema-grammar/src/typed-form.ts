/** The keywords that speak of one type each, together with `type`: the form of a schema before it is combined with others. */
import { isEmpty, isUniversal } from "./automaton.ts"
import { SchemaRefusal } from "./budget.ts"
import { decimalOf } from "./decimal.ts"
import { formatAutomaton, isKnownFormat } from "./formats.ts"
import {
  type ArrayForm,
  type Contains,
  type Goal,
  type Layer,
  type NormalForm,
  type ObjectForm,
  type StringForm,
  anyArray,
  anyObject,
  anyString,
  anything,
  arrayIsImpossible,
  intersect,
  intersectSome,
  objectIsImpossible,
  openLayer,
  union,
  unionSome,
} from "./normal-form.ts"
import type { Mode, Normaliser } from "./normalise.ts"
import { type Bound, type NumberForm, anyNumber, intersectNumbers } from "./number-form.ts"
import { type Pattern, isSmall } from "./pattern.ts"
import { count, mapOf, numeric, step, typesOf } from "./keywords.ts"
import type { Schema } from "./references.ts"

type Positive = Exclude<Mode, "not">

export function typedForm(to: Normaliser, schema: Schema, mode: Positive, path: string): NormalForm {
  const wanted = typesOf(schema, path)
  const has = (type: string): boolean => wanted === null || wanted.has(type)
  const whole = wanted !== null && !wanted.has("number") && wanted.has("integer")
  const number = has("number") || has("integer") ? numberForm(to, schema, whole, path) : null
  const text = has("string") ? stringForm(to, schema, mode, path) : null
  const array = has("array") ? arrayForm(to, schema, mode, path) : null
  const object = has("object") ? objectForm(to, schema, mode, path) : null
  const form: NormalForm = {
    hasNull: has("null"),
    booleans: has("boolean") ? [true, false] : [],
    numbers: number ? [number] : [],
    strings: text ? [text] : [],
    arrays: array && (array === anyArray || !arrayIsImpossible(array, to)) ? [array] : [],
    objects: object && (object === anyObject || !objectIsImpossible(object, to)) ? [object] : [],
  }
  const open =
    wanted === null &&
    number === anyNumber &&
    text === anyString &&
    array === anyArray &&
    object === anyObject
  return dependencies(to, schema, mode, { form: open ? anything : form, path })
}

/** With the older drafts' `exclusiveMinimum: true`, which is about `minimum`. */
export function boundsOf(to: Normaliser, schema: Schema, path: string): Pick<NumberForm, "min" | "max"> {
  const bound = (keyword: "minimum" | "maximum", beyond: string): Bound | null => {
    const value = numeric(to, schema, keyword, path)
    const made = value === null ? null : { value: decimalOf(value), exclusive: schema[beyond] === true }
    if (typeof schema[beyond] === "boolean") return made
    const limit = numeric(to, schema, beyond, path)
    if (limit === null) return made
    const outer: Bound = { value: decimalOf(limit), exclusive: true }
    const side = keyword === "minimum" ? "min" : "max"
    const met = made && intersectNumbers({ ...anyNumber, [side]: made }, { ...anyNumber, [side]: outer })
    return met?.[side] ?? outer
  }
  return { min: bound("minimum", "exclusiveMinimum"), max: bound("maximum", "exclusiveMaximum") }
}

/** OpenAPI's formats of numbers that say how large one may be. */
const numberFormats: Readonly<Record<string, readonly [number, number]>> = {
  int8: [-128, 127],
  uint8: [0, 255],
  int16: [-32_768, 32_767],
  uint16: [0, 65_535],
  int32: [-2_147_483_648, 2_147_483_647],
  uint32: [0, 4_294_967_295],
}

function numberForm(to: Normaliser, schema: Schema, whole: boolean, path: string): NumberForm | null {
  const { min, max } = boundsOf(to, schema, path)
  const step = numeric(to, schema, "multipleOf", path)
  if (step !== null && step <= 0) throw new SchemaRefusal("multipleOf is not above zero", path)
  const range = typeof schema["format"] === "string" ? numberFormats[schema["format"]] : undefined
  if (!whole && !min && !max && step === null && !range) return anyNumber
  const own: NumberForm = {
    ...anyNumber,
    whole: whole ? true : null,
    min,
    max,
    multipleOf: step === null ? null : decimalOf(step),
  }
  const [low, high] = range ?? []
  const sized: NumberForm = {
    ...anyNumber,
    min: low === undefined ? null : { value: decimalOf(low), exclusive: false },
    max: high === undefined ? null : { value: decimalOf(high), exclusive: false },
  }
  return intersectNumbers(own, sized)
}

function stringForm(to: Normaliser, schema: Schema, mode: Positive, path: string): StringForm | null {
  const min = count(to, schema, "minLength", path) ?? 0
  const max = count(to, schema, "maxLength", path) ?? Infinity
  const pattern = patternAutomaton(to, schema, mode, path)
  const format = mode === "wide" ? null : formatOf(to, schema, path)
  const automaton = pattern && format ? to.both(pattern, format) : (pattern ?? format)
  if (min === 0 && max === Infinity && !automaton) return anyString
  if (min > max || (automaton && isEmpty(automaton))) return null
  return { min, max, automaton, among: null }
}

function patternAutomaton(to: Normaliser, schema: Schema, mode: Positive, path: string) {
  const source = schema["pattern"]
  if (source === undefined) return null
  if (typeof source !== "string") {
    to.open(path, "pattern", "pattern is not a text")
    return null
  }
  try {
    if (mode === "narrow") {
      const automaton = to.narrowPattern(source)
      return isUniversal(automaton) ? null : automaton
    }
    if (!isSmall(source)) return null
    const { automaton, basic } = to.pattern(source)
    return basic ? null : automaton
  } catch (error) {
    if (!(error instanceof SchemaRefusal)) throw error
    to.open(path, "pattern", error.message)
    return null
  }
}

function formatOf(to: Normaliser, schema: Schema, path: string) {
  const { format } = schema
  if (typeof format !== "string") return null
  // Validators ignore formats that they do not know; the caller is told.
  if (!isKnownFormat(format) && !Object.hasOwn(numberFormats, format)) to.notEnforced.add(`${path}/format`)
  return formatAutomaton(format)
}

function arrayForm(to: Normaliser, schema: Schema, mode: Positive, path: string): ArrayForm | null {
  const { items } = schema
  const old = Array.isArray(items)
  const prefix: readonly unknown[] = old
    ? (items as unknown[])
    : Array.isArray(schema["prefixItems"])
      ? (schema["prefixItems"] as unknown[])
      : []
  const restKeyword = old ? "additionalItems" : "items"
  const rest = schema[restKeyword]
  const min = count(to, schema, "minItems", path) ?? 0
  const max = count(to, schema, "maxItems", path) ?? Infinity
  const unique = schema["uniqueItems"] === true
  const contains = containsOf(to, schema, mode, path)
  if (
    prefix.length === 0 &&
    rest === undefined &&
    min === 0 &&
    max === Infinity &&
    !unique &&
    contains.length === 0
  )
    return anyArray
  const restGoal = rest === undefined ? [] : to.goal(rest, mode, `${path}/${restKeyword}`)
  const closed = rest === false
  return {
    prefix: prefix.map((one, index) =>
      to.goal(one, mode, `${path}/${old ? "items" : "prefixItems"}/${index}`),
    ),
    evaluated: prefix.length,
    rest: restGoal,
    restGiven: rest !== undefined,
    min,
    max: closed ? Math.min(max, prefix.length) : max,
    unique,
    contains,
    value: null,
  }
}

function containsOf(to: Normaliser, schema: Schema, mode: Positive, path: string): readonly Contains[] {
  if (schema["contains"] === undefined) return []
  const min = count(to, schema, "minContains", path) ?? 1
  const max = count(to, schema, "maxContains", path) ?? Infinity
  if (min === 0 && max === Infinity) return []
  const goal = (wanted: Mode): Goal => to.goal(schema["contains"], wanted, `${path}/contains`)
  // Too many is not proven by items that may match.
  const most = mode === "wide" ? Infinity : max
  return [{ goal: goal(mode), may: goal("wide"), not: goal("not"), min, max: most }]
}

function objectForm(to: Normaliser, schema: Schema, mode: Positive, path: string): ObjectForm {
  const layer = layerOf(to, schema, mode, path)
  const required = requiredOf(to, schema, path)
  const min = count(to, schema, "minProperties", path) ?? 0
  const max = count(to, schema, "maxProperties", path) ?? Infinity
  const names =
    schema["propertyNames"] === undefined
      ? []
      : to.goal(schema["propertyNames"], mode, `${path}/propertyNames`)
  if (layer === openLayer && required.size === 0 && min === 0 && max === Infinity && names.length === 0)
    return anyObject
  return { layers: layer === openLayer ? [] : [layer], required, min, max, names, value: null }
}

export function requiredOf(to: Normaliser, schema: Schema, path: string): ReadonlySet<string> {
  const { required } = schema
  if (required === undefined) return new Set()
  if (Array.isArray(required) && required.every((one) => typeof one === "string")) return new Set(required)
  // A boolean is the third draft's, and of the property rather than of the object.
  to.open(path, "required", "required is not a list of names")
  return new Set()
}

function layerOf(to: Normaliser, schema: Schema, mode: Positive, path: string): Layer {
  const own = mapOf(to, schema, "properties", path)
  const patterns = mapOf(to, schema, "patternProperties", path)
  const additional = schema["additionalProperties"]
  if (own.length === 0 && patterns.length === 0 && additional === undefined) return openLayer
  const known: { pattern: Pattern; goal: Goal }[] = []
  for (const [source, one] of patterns) {
    const pattern = namePattern(to, source, path)
    if (mode === "wide" && (!pattern || pattern.basic)) return openLayer
    if (pattern)
      known.push({ pattern, goal: to.goal(one, mode, `${path}/patternProperties/${step(source)}`) })
  }
  return {
    properties: new Map(
      own.map(([name, one]) => [name, to.goal(one, mode, `${path}/properties/${step(name)}`)]),
    ),
    patterns: known,
    additional: additional === undefined ? [] : to.goal(additional, mode, `${path}/additionalProperties`),
    additionalGiven: additional !== undefined,
    evaluates: true,
  }
}

function namePattern(to: Normaliser, source: string, path: string): Pattern | null {
  try {
    return to.pattern(source)
  } catch (error) {
    if (!(error instanceof SchemaRefusal)) throw error
    to.open(path, "patternProperties", error.message)
    return null
  }
}

/** What holds only where a property is present: either it is not there, or the rest holds. */
function dependencies(
  to: Normaliser,
  schema: Schema,
  mode: Positive,
  given: { readonly form: NormalForm; readonly path: string },
): NormalForm {
  const { path } = given
  let { form } = given
  const required = requiredOf(to, schema, path)
  const narrow = mode === "narrow" ? intersectSome : intersect
  const join = mode === "narrow" ? unionSome : union
  for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"])
    for (const [name, dependent] of mapOf(to, schema, keyword, path)) {
      const then = dependentForm(to, dependent, mode, `${path}/${keyword}/${step(name)}`)
      // The property is required: without it the dependent schema does not apply, and evaluates nothing.
      const has: NormalForm = { ...anything, objects: [{ ...anyObject, required: new Set([name]) }] }
      const present = intersect({ ...anything, objects: then.objects }, has, to)
      form = narrow(
        form,
        required.has(name)
          ? present
          : join({ ...anything, objects: [without(to, name)] }, onlyObjects(present)),
        to,
      )
    }
  return form
}

const onlyObjects = (form: NormalForm): NormalForm => ({
  ...form,
  hasNull: false,
  booleans: [],
  numbers: [],
  strings: [],
  arrays: [],
})

/** Objects that do not have a property. */
export const without = (to: Normaliser, name: string): ObjectForm => ({
  ...anyObject,
  layers: [{ ...openLayer, properties: new Map([[name, to.goal(false, "narrow", "")]]), evaluates: false }],
})

function dependentForm(to: Normaliser, dependent: unknown, mode: Positive, path: string): NormalForm {
  if (!Array.isArray(dependent)) return to.here(dependent, mode, path)
  const required = new Set(dependent.filter((one) => typeof one === "string"))
  return { ...anything, objects: required.size === 0 ? [anyObject] : [{ ...anyObject, required }] }
}
