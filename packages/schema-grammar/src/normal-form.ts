/** The normal form of schemas: for each type of JSON, the alternatives of what a value may be. Conjunctions are worked out in it. */
import { type Automaton, accepts, intersection, isEmpty, lengthsOf } from "./automaton.ts"
import { type Budget, SchemaRefusal } from "./budget.ts"
import { decimalOf } from "./decimal.ts"
import { type NumberForm, anyNumber, intersectNumbers, numberIn, numbers } from "./number-form.ts"
import type { Pattern } from "./pattern.ts"

/** Something that a value must satisfy; its normal form is worked out when it is needed, since schemas contain themselves. */
export interface Term {
  readonly id: number
}
/** All of these must hold; none is anything. */
export type Goal = readonly Term[]

export interface StringForm {
  readonly min: number
  readonly max: number
  readonly automaton: Automaton | null
  /** Only these. */
  readonly among: readonly string[] | null
}

export interface Contains {
  readonly goal: Goal
  /** Every item that may match satisfies this: for counting up to the most. */
  readonly may: Goal
  /** What satisfies this certainly does not match. */
  readonly not: Goal
  readonly min: number
  readonly max: number
}

export interface ArrayForm {
  readonly prefix: readonly Goal[]
  /** So many of the first items are spoken of by schemas that hold. */
  readonly evaluated: number
  readonly rest: Goal
  /** The schema says what the rest is, so that nothing in it is unevaluated. */
  readonly restGiven: boolean
  readonly min: number
  readonly max: number
  readonly unique: boolean
  readonly contains: readonly Contains[]
  /** Only this. */
  readonly value: readonly unknown[] | null
}

/** `properties`, `patternProperties` and `additionalProperties` of one schema: the last speaks of what the others leave. */
export interface Layer {
  readonly properties: ReadonlyMap<string, Goal>
  readonly patterns: readonly { readonly pattern: Pattern; readonly goal: Goal }[]
  readonly additional: Goal
  readonly additionalGiven: boolean
  /** From a schema that holds, rather than from one that must not. */
  readonly evaluates: boolean
}

export interface ObjectForm {
  readonly layers: readonly Layer[]
  readonly required: ReadonlySet<string>
  readonly min: number
  readonly max: number
  /** What every name must be. */
  readonly names: Goal
  readonly value: Readonly<Record<string, unknown>> | null
  /** What the value of a property is, whatever the layers say: a part of what they say. */
  readonly narrowed?: ReadonlyMap<string, Goal>
}

export interface NormalForm {
  readonly hasNull: boolean
  readonly booleans: readonly boolean[]
  readonly numbers: readonly NumberForm[]
  readonly strings: readonly StringForm[]
  readonly arrays: readonly ArrayForm[]
  readonly objects: readonly ObjectForm[]
}

export const anyString: StringForm = { min: 0, max: Infinity, automaton: null, among: null }
export const anyArray: ArrayForm = {
  prefix: [],
  evaluated: 0,
  rest: [],
  restGiven: false,
  min: 0,
  max: Infinity,
  unique: false,
  contains: [],
  value: null,
}
export const anyObject: ObjectForm = {
  layers: [],
  required: new Set(),
  min: 0,
  max: Infinity,
  names: [],
  value: null,
}
export const openLayer: Layer = {
  properties: new Map(),
  patterns: [],
  additional: [],
  additionalGiven: false,
  evaluates: true,
}

export const nothing: NormalForm = {
  hasNull: false,
  booleans: [],
  numbers: [],
  strings: [],
  arrays: [],
  objects: [],
}
export const anything: NormalForm = {
  hasNull: true,
  booleans: [true, false],
  numbers: [anyNumber],
  strings: [anyString],
  arrays: [anyArray],
  objects: [anyObject],
}

export const isNothing = (form: NormalForm): boolean =>
  !form.hasNull &&
  form.booleans.length + form.numbers.length + form.strings.length === 0 &&
  form.arrays.length + form.objects.length === 0

/** Alternatives for one type; more are not followed. */
const ALTERNATIVES_MAX = 256
/** Where a part of them will do. */
const SOME_ALTERNATIVES_MAX = 64

export const union = (a: NormalForm, b: NormalForm): NormalForm => join(a, b, bounded)

/** As much of the union as there is room for, for forms that may be narrower than their schemas. */
export const unionSome = (a: NormalForm, b: NormalForm): NormalForm =>
  join(a, b, (forms) => forms.slice(0, ALTERNATIVES_MAX))

type Bounding = <Form>(forms: readonly Form[]) => readonly Form[]

function join(a: NormalForm, b: NormalForm, bounding: Bounding): NormalForm {
  if (isNothing(a)) return b
  if (isNothing(b)) return a
  return {
    hasNull: a.hasNull || b.hasNull,
    booleans: [...new Set([...a.booleans, ...b.booleans])],
    numbers: joined(a.numbers, b.numbers, anyNumber, bounding),
    strings: joined(a.strings, b.strings, anyString, bounding),
    arrays: joined(a.arrays, b.arrays, anyArray, bounding),
    objects: joined(a.objects, b.objects, anyObject, bounding),
  }
}

/** Beside one that allows everything, the others say nothing. */
function joined<Form>(
  a: readonly Form[],
  b: readonly Form[],
  every: Form,
  bounding: Bounding,
): readonly Form[] {
  if (a.includes(every) || b.includes(every)) return [every]
  return bounding(a.length === 0 ? b : b.length === 0 ? a : [...a, ...b])
}

function bounded<Form>(forms: readonly Form[]): readonly Form[] {
  if (forms.length > ALTERNATIVES_MAX) throw new SchemaRefusal("it has too many alternatives")
  return forms
}

/** The same values, by schemas that need not hold: nothing is evaluated by them. */
export const unevaluating = (form: NormalForm): NormalForm =>
  form === anything
    ? form
    : {
        ...form,
        arrays: form.arrays.map((one) =>
          one === anyArray ? one : { ...one, evaluated: 0, restGiven: false },
        ),
        objects: form.objects.map((one) =>
          one.layers.length === 0
            ? one
            : { ...one, layers: one.layers.map((layer) => ({ ...layer, evaluates: false })) },
        ),
      }

/** What answers for goals: whether a value satisfies one, and whether it is certain that nothing does. */
export interface Goals {
  readonly budget: Budget
  satisfies(value: unknown, goal: Goal): boolean
  isImpossible(goal: Goal): boolean
}

export const intersect = (a: NormalForm, b: NormalForm, goals: Goals): NormalForm =>
  meet(a, b, { goals, alternativesMax: Infinity })

/**
 * A part of the intersection, for forms that may be narrower than their schemas: each alternative of `a` is kept, with as
 * many of `b` as there is room for. It is empty only where the intersection is.
 */
export const intersectSome = (a: NormalForm, b: NormalForm, goals: Goals): NormalForm =>
  meet(a, b, { goals, alternativesMax: SOME_ALTERNATIVES_MAX })

/** The whole of it unless that has too many alternatives. */
export const intersectMost = (a: NormalForm, b: NormalForm, goals: Goals): NormalForm =>
  meet(a, b, { goals, alternativesMax: ALTERNATIVES_MAX })

interface Meeting {
  readonly goals: Goals
  readonly alternativesMax: number
}

function meet(a: NormalForm, b: NormalForm, meeting: Meeting): NormalForm {
  if (a === anything) return b
  if (b === anything) return a
  meeting.goals.budget.spend()
  return {
    hasNull: a.hasNull && b.hasNull,
    booleans: a.booleans.filter((one) => b.booleans.includes(one)),
    numbers: crossed(a.numbers, b.numbers, anyNumber, intersectNumbers, meeting),
    strings: crossed(a.strings, b.strings, anyString, intersectStrings, meeting),
    arrays: crossed(a.arrays, b.arrays, anyArray, intersectArrays, meeting),
    objects: crossed(a.objects, b.objects, anyObject, intersectObjects, meeting),
  }
}

function crossed<Form>(
  a: readonly Form[],
  b: readonly Form[],
  every: Form,
  meetOne: (a: Form, b: Form, goals: Goals) => Form | null,
  { goals, alternativesMax }: Meeting,
): readonly Form[] {
  const made: Form[] = []
  for (const [index, left] of a.entries()) {
    // What those before it have left of their shares is there for this one.
    const room = Math.max(made.length + 1, Math.floor((alternativesMax * (index + 1)) / a.length))
    for (const right of b) {
      if (made.length >= room) break
      goals.budget.spend()
      const met = left === every ? right : right === every ? left : meetOne(left, right, goals)
      if (met === null) continue
      made.push(met)
      bounded(made)
    }
  }
  return made
}

function intersectStrings(a: StringForm, b: StringForm, { budget }: Goals): StringForm | null {
  if (a.among ?? b.among) {
    const [listed, other] = a.among ? [a, b] : [b, a]
    const both = other.among && new Set(other.among)
    const left = (listed.among ?? []).filter((text) => (both ? both.has(text) : stringIn(other, text)))
    return left.length === 0 ? null : { ...anyString, among: left }
  }
  const min = Math.max(a.min, b.min)
  const max = Math.min(a.max, b.max)
  if (min > max) return null
  const automaton =
    a.automaton && b.automaton ? intersection(a.automaton, b.automaton, budget) : (a.automaton ?? b.automaton)
  if (automaton) {
    if (isEmpty(automaton)) return null
    const { least, most } = lengthsOf(automaton)
    if (least > max || most < min) return null
  }
  return { min, max, automaton, among: null }
}

function stringIn({ min, max, automaton, among }: StringForm, text: string): boolean {
  if (among && !among.includes(text)) return false
  if (min > 0 || max < Infinity) {
    const { length } = Array.from(text)
    if (length < min || length > max) return false
  }
  return !automaton || accepts(automaton, text)
}

function intersectArrays(a: ArrayForm, b: ArrayForm, goals: Goals): ArrayForm | null {
  const value = a.value ?? b.value
  if (value) return arrayIn(a, value, goals) && arrayIn(b, value, goals) ? { ...anyArray, value } : null
  const length = Math.max(a.prefix.length, b.prefix.length)
  const met: ArrayForm = {
    prefix: Array.from({ length }, (_, index) => both(a.prefix[index] ?? a.rest, b.prefix[index] ?? b.rest)),
    evaluated: Math.max(a.evaluated, b.evaluated),
    rest: both(a.rest, b.rest),
    restGiven: a.restGiven || b.restGiven,
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    unique: a.unique || b.unique,
    contains: [...a.contains, ...b.contains],
    value: null,
  }
  return arrayIsImpossible(met, goals) ? null : met
}

export function arrayIsImpossible({ prefix, rest, min, max }: ArrayForm, goals: Goals): boolean {
  if (min > max) return true
  for (let index = 0; index < Math.min(min, prefix.length + 1); index++)
    if (goals.isImpossible(prefix[index] ?? rest)) return true
  return false
}

/** Both must hold; a term that stands twice stands once. */
export function both(a: Goal, b: Goal): Goal {
  if (a.length === 0) return b
  if (b.length === 0) return a
  const known = new Set(a.map(({ id }) => id))
  return [...a, ...b.filter(({ id }) => !known.has(id))]
}

function arrayIn(form: ArrayForm, value: readonly unknown[], goals: Goals): boolean {
  const { prefix, rest, min, max, unique, contains, value: only } = form
  if (only && !same(only, value)) return false
  if (value.length < min || value.length > max) return false
  if (unique && new Set(value.map(canonicalText)).size < value.length) return false
  if (!value.every((one, index) => goals.satisfies(one, prefix[index] ?? rest))) return false
  const countOf = (goal: Goal): number => value.filter((item) => goals.satisfies(item, goal)).length
  return contains.every(
    (one) => countOf(one.goal) >= one.min && (one.max === Infinity || countOf(one.may) <= one.max),
  )
}

function intersectObjects(a: ObjectForm, b: ObjectForm, goals: Goals): ObjectForm | null {
  const value = a.value ?? b.value
  if (value) return objectIn(a, value, goals) && objectIn(b, value, goals) ? { ...anyObject, value } : null
  goals.budget.spend(a.layers.length + b.layers.length + a.required.size + b.required.size)
  const met: ObjectForm = {
    layers: [...new Set([...a.layers, ...b.layers])],
    required: new Set([...a.required, ...b.required]),
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    names: both(a.names, b.names),
    value: null,
  }
  if (met.min > met.max || met.required.size > met.max) return null
  for (const name of met.required) if (requiredConflict(a, b, name, goals)) return null
  return met
}

/** Whether a property that one of them requires cannot be what both say; what each says alone has been looked at before. */
function requiredConflict(a: ObjectForm, b: ObjectForm, name: string, goals: Goals): boolean {
  if (!a.required.has(name) && !goals.satisfies(name, a.names)) return true
  if (!b.required.has(name) && !goals.satisfies(name, b.names)) return true
  const [left, right] = [propertyGoal(a, name), propertyGoal(b, name)]
  if (left.length === 0 && b.required.has(name)) return false
  if (right.length === 0 && a.required.has(name)) return false
  goals.budget.spend()
  return goals.isImpossible(both(left, right))
}

export function objectIsImpossible(form: ObjectForm, goals: Goals): boolean {
  if (form.min > form.max || form.required.size > form.max) return true
  for (const name of form.required) {
    goals.budget.spend(form.layers.length)
    if (!goals.satisfies(name, form.names)) return true
    if (goals.isImpossible(propertyGoal(form, name))) return true
  }
  return false
}

/** What the value of a property must be. */
export function propertyGoal({ layers, narrowed }: ObjectForm, name: string): Goal {
  return narrowed?.get(name) ?? layers.reduce<Goal>((goal, layer) => both(goal, layerGoal(layer, name)), [])
}

function layerGoal({ properties, patterns, additional }: Layer, name: string): Goal {
  const own = properties.get(name)
  if (patterns.length === 0) return own ?? additional
  const matching = patterns.filter(({ pattern }) => nameMatches(pattern, name))
  if (own === undefined && matching.length === 0) return additional
  return matching.reduce((goal, one) => both(goal, one.goal), own ?? [])
}

function nameMatches({ automaton, basic }: Pattern, name: string): boolean {
  if (basic && Array.from(name).length < name.length)
    throw new SchemaRefusal("a pattern of properties cannot be compared with a name beyond the basic plane")
  return accepts(automaton, name)
}

function objectIn(form: ObjectForm, value: Readonly<Record<string, unknown>>, goals: Goals): boolean {
  if (form.value && !same(form.value, value)) return false
  const names = Object.keys(value)
  if (names.length < form.min || names.length > form.max) return false
  for (const name of form.required) if (!Object.hasOwn(value, name)) return false
  return names.every(
    (name) => goals.satisfies(name, form.names) && goals.satisfies(value[name], propertyGoal(form, name)),
  )
}

/** Whether a value is one that the form allows. */
export function isIn(form: NormalForm, value: unknown, goals: Goals): boolean {
  goals.budget.spend()
  if (value === null) return form.hasNull
  if (typeof value === "boolean") return form.booleans.includes(value)
  if (typeof value === "number") return form.numbers.some((one) => numberIn(one, decimalOf(value)))
  if (typeof value === "string") return form.strings.some((one) => stringIn(one, value))
  if (Array.isArray(value)) return form.arrays.some((one) => arrayIn(one, value, goals))
  // JSON has nothing else.
  return form.objects.some((one) => objectIn(one, value as Record<string, unknown>, goals))
}

/** Exactly these values. */
export function valuesForm(values: readonly unknown[]): NormalForm {
  const distinct = values.length > 1 ? withoutRepeats(values) : values
  const numeric = distinct.filter((one) => typeof one === "number")
  const texts = distinct.filter((one) => typeof one === "string")
  return {
    hasNull: distinct.includes(null),
    booleans: distinct.filter((one) => typeof one === "boolean"),
    numbers: numeric.length === 0 ? [] : [numbers(numeric)],
    strings: texts.length === 0 ? [] : [{ ...anyString, among: texts }],
    arrays: distinct.filter(isList).map((value) => ({ ...anyArray, value })),
    objects: distinct.filter(isRecord).map((value) => ({ ...anyObject, value })),
  }
}

function withoutRepeats(values: readonly unknown[]): unknown[] {
  const known = new Map<string, unknown>()
  for (const value of values) known.set(canonicalText(value), value)
  return [...known.values()]
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const same = (a: unknown, b: unknown): boolean => canonicalText(a) === canonicalText(b)

/** The same for values that JSON Schema calls equal: names in any order. */
function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) =>
    isRecord(one) ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))) : one,
  )
}
