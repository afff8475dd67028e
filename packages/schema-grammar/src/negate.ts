/** Values that do not satisfy a schema: any of its keywords may be the one that fails. Keywords left out leave fewer values. */
import { SchemaRefusal } from "./budget.ts"
import { decimalOf } from "./decimal.ts"
import {
  type NormalForm,
  anyArray,
  anyObject,
  anyString,
  anything,
  intersectSome,
  nothing,
  objectIsImpossible,
  openLayer,
  unevaluating,
  unionSome,
} from "./normal-form.ts"
import { count, mapOf, partsOf, reference, step, typesOf } from "./keywords.ts"
import type { Normaliser } from "./normalise.ts"
import { anyNumber } from "./number-form.ts"
import { isSmall } from "./pattern.ts"
import type { Schema } from "./references.ts"
import { boundsOf, requiredOf, without } from "./typed-form.ts"

export function negative(to: Normaliser, schema: Schema, path: string): NormalForm {
  const forms = [
    notTyped(schema, path),
    notValues(to, schema),
    notNumbers(to, schema, path),
    notStrings(to, schema, path),
    notArrays(to, schema, path),
    notObjects(to, schema, path),
    notCombined(to, schema, path),
  ]
  return forms.reduce(unionSome)
}

function notTyped(schema: Schema, path: string): NormalForm {
  const types = typesOf(schema, path)
  if (!types) return nothing
  const lacks = (type: string): boolean => !types.has(type)
  const fractions = types.has("integer") ? [{ ...anyNumber, whole: false }] : [anyNumber]
  return {
    hasNull: lacks("null"),
    booleans: lacks("boolean") ? [true, false] : [],
    numbers: lacks("number") ? fractions : [],
    strings: lacks("string") ? [anyString] : [],
    arrays: lacks("array") ? [anyArray] : [],
    objects: lacks("object") ? [anyObject] : [],
  }
}

function notValues(to: Normaliser, schema: Schema): NormalForm {
  const lists = [
    ...(Object.hasOwn(schema, "const") ? [[schema["const"]]] : []),
    ...(Array.isArray(schema["enum"]) ? [schema["enum"] as unknown[]] : []),
  ]
  return lists.map((values) => notAmong(to, values)).reduce(unionSome, nothing)
}

function notAmong(to: Normaliser, values: readonly unknown[]): NormalForm {
  const numeric = values.filter((one) => typeof one === "number")
  const texts = values.filter((one) => typeof one === "string")
  const structured = values.filter((one) => typeof one === "object" && one !== null)
  return {
    hasNull: !values.includes(null),
    booleans: [true, false].filter((one) => !values.includes(one)),
    numbers: [numeric.length === 0 ? anyNumber : { ...anyNumber, excluded: numeric.map(decimalOf) }],
    strings: [texts.length === 0 ? anyString : { ...anyString, automaton: to.except(texts) }],
    arrays: structured.some((one) => Array.isArray(one)) ? [] : [anyArray],
    objects: structured.some((one) => !Array.isArray(one)) ? [] : [anyObject],
  }
}

function notNumbers(to: Normaliser, schema: Schema, path: string): NormalForm {
  const { min, max } = boundsOf(to, schema, path)
  return {
    ...nothing,
    numbers: [
      ...(min ? [{ ...anyNumber, max: { value: min.value, exclusive: !min.exclusive } }] : []),
      ...(max ? [{ ...anyNumber, min: { value: max.value, exclusive: !max.exclusive } }] : []),
    ],
  }
}

function notStrings(to: Normaliser, schema: Schema, path: string): NormalForm {
  const min = count(to, schema, "minLength", path) ?? 0
  const max = count(to, schema, "maxLength", path)
  const other = notPattern(to, schema)
  return {
    ...nothing,
    strings: [
      ...(min > 0 ? [{ ...anyString, max: min - 1 }] : []),
      ...(max === null ? [] : [{ ...anyString, min: max + 1 }]),
      ...(other ? [{ ...anyString, automaton: other }] : []),
    ],
  }
}

function notPattern(to: Normaliser, { pattern }: Schema) {
  if (typeof pattern !== "string") return null
  try {
    return isSmall(pattern) ? to.notMatching(to.pattern(pattern)) : null
  } catch (error) {
    if (error instanceof SchemaRefusal) return null
    throw error
  }
}

function notArrays(to: Normaliser, schema: Schema, path: string): NormalForm {
  const min = count(to, schema, "minItems", path) ?? 0
  const max = count(to, schema, "maxItems", path)
  const { items, contains } = schema
  const listed = [schema["prefixItems"], items].find((one) => Array.isArray(one)) as unknown[] | undefined
  const prefix = (listed ?? []).map((one, index) => ({
    ...anyArray,
    prefix: [...Array.from({ length: index }, () => []), to.goal(one, "not", `${path}/prefixItems/${index}`)],
    min: index + 1,
  }))
  const first =
    items === undefined || listed
      ? []
      : [{ ...anyArray, prefix: [to.goal(items, "not", `${path}/items`)], min: 1 }]
  const none =
    contains === undefined || (count(to, schema, "minContains", path) ?? 1) === 0
      ? []
      : [{ ...anyArray, rest: to.goal(contains, "not", `${path}/contains`) }]
  return {
    ...nothing,
    arrays: [
      ...(min > 0 ? [{ ...anyArray, max: min - 1 }] : []),
      ...(max === null ? [] : [{ ...anyArray, min: max + 1 }]),
      ...prefix,
      ...first,
      ...none,
    ],
  }
}

function notObjects(to: Normaliser, schema: Schema, path: string): NormalForm {
  const min = count(to, schema, "minProperties", path) ?? 0
  const max = count(to, schema, "maxProperties", path)
  const wrong = mapOf(to, schema, "properties", path).map(([name, one]) => {
    const goal = to.goal(one, "not", `${path}/properties/${step(name)}`)
    const layer = { ...openLayer, properties: new Map([[name, goal]]), evaluates: false }
    return { ...anyObject, layers: [layer], required: new Set([name]) }
  })
  const lacking = mapOf(to, schema, "dependentRequired", path).flatMap(([name, others]) =>
    (Array.isArray(others) ? (others as unknown[]) : [])
      .filter((one) => typeof one === "string")
      .map((other) => ({ ...without(to, other), required: new Set([name]) })),
  )
  return {
    ...nothing,
    objects: [
      ...[...requiredOf(to, schema, path)].map((name) => without(to, name)),
      ...wrong.filter((form) => !objectIsImpossible(form, to)),
      ...lacking,
      ...(min > 0 ? [{ ...anyObject, max: min - 1 }] : []),
      ...(max === null ? [] : [{ ...anyObject, min: max + 1 }]),
    ],
  }
}

function notCombined(to: Normaliser, schema: Schema, path: string): NormalForm {
  const not = (part: unknown, place: string): NormalForm => to.here(part, "not", `${path}/${place}`)
  const options = (key: "anyOf" | "oneOf"): NormalForm =>
    schema[key] === undefined
      ? nothing
      : partsOf(to, schema, key, path)
          .map((part, index) => not(part, `${key}/${index}`))
          .reduce((a, b) => intersectSome(a, b, to), anything)
  const target = typeof schema["$ref"] === "string" ? reference(to, schema, schema["$ref"], path) : undefined
  const forms = [
    ...partsOf(to, schema, "allOf", path).map((part, index) => not(part, `allOf/${index}`)),
    options("anyOf"),
    options("oneOf"),
    schema["not"] === undefined ? nothing : unevaluating(to.here(schema["not"], "narrow", `${path}/not`)),
    target === undefined || target === null ? nothing : to.here(target, "not", path),
    notConditional(to, schema, path),
  ]
  return forms.reduce(unionSome)
}

function notConditional(to: Normaliser, schema: Schema, path: string): NormalForm {
  if (schema["if"] === undefined) return nothing
  const branch = (key: "then" | "else"): NormalForm =>
    schema[key] === undefined ? nothing : to.here(schema[key], "not", `${path}/${key}`)
  return unionSome(
    intersectSome(unevaluating(to.here(schema["if"], "narrow", `${path}/if`)), branch("then"), to),
    intersectSome(to.here(schema["if"], "not", `${path}/if`), branch("else"), to),
  )
}
