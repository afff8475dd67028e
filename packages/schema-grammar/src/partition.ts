/** Cuts what a form allows into parts that have nothing in common, so that one of each is never the same twice. */
import {
  type Automaton,
  type Edge,
  type Range,
  everything,
  intersection,
  lengthsOf,
  ofLength,
  rangesWithout,
} from "./automaton.ts"
import type { Budget } from "./budget.ts"
import { decimalOf, textOf } from "./decimal.ts"
import {
  type NormalForm,
  type ObjectForm,
  type StringForm,
  anyString,
  nothing,
  objectIsImpossible,
  propertyGoal,
} from "./normal-form.ts"
import type { Normaliser } from "./normalise.ts"
import { type NumberForm, anyNumber, intersectNumbers, numbers } from "./number-form.ts"

const PARTS_MAX = 64
const NESTING_MAX = 3
const LENGTH_MAX = 1000
/** Each length is a state of its own for each state of the automaton; longer texts are left out. */
const SIZED_STATES_MAX = 1200
/** What texts begin with, in the order of the parts: digits, then each letter, small or large, then anything else. */
const letters: readonly (readonly Range[])[] = Array.from({ length: 26 }, (_, index) => [
  [0x41 + index, 0x41 + index],
  [0x61 + index, 0x61 + index],
])
const digits: readonly Range[] = [[0x30, 0x39]]
const beginnings: readonly (readonly Range[])[] = [
  digits,
  ...letters,
  rangesWithout(everything, [...digits, ...letters.flat()]),
]

/** In the order in which a list holds them. */
export function partition(to: Normaliser, form: NormalForm, nesting = 0): NormalForm[] {
  const parts: NormalForm[] = [
    ...(form.hasNull ? [{ ...nothing, hasNull: true }] : []),
    ...form.booleans.map((one) => ({ ...nothing, booleans: [one] })),
    ...numberParts(form.numbers).map((one) => ({ ...nothing, numbers: [one] })),
    ...stringParts(form.strings, to.budget).map((one) => ({ ...nothing, strings: [one] })),
    // Lists are told apart by nothing but their being lists.
    ...(form.arrays.length > 0 ? [{ ...nothing, arrays: form.arrays }] : []),
    ...objectParts(to, form.objects, nesting).map((one) => ({ ...nothing, objects: [one] })),
  ]
  return parts.slice(0, PARTS_MAX)
}

const between = (low: number, high: number): NumberForm => ({
  ...anyNumber,
  min: { value: decimalOf(low), exclusive: false },
  max: { value: decimalOf(high), exclusive: true },
})

function numberParts(forms: readonly NumberForm[]): NumberForm[] {
  const listed = forms.flatMap(({ among }) => among ?? [])
  if (listed.length > 0) {
    const distinct = [...new Map(listed.map((one) => [textOf(one), one])).values()]
    return distinct.map((one) => ({ ...anyNumber, among: [one] }))
  }
  const [form] = forms
  if (!form) return []
  const below: NumberForm = { ...anyNumber, max: { value: decimalOf(0), exclusive: true } }
  const ones = Array.from({ length: 10 }, (_, value) => numbers([value]))
  const tens = [between(10, 100), between(100, 1000), between(1000, 1e6), between(1e6, 1e9)]
  return [below, ...ones, ...tens].map((part) => intersectNumbers(form, part)).filter((part) => part !== null)
}

function stringParts(forms: readonly StringForm[], budget: Budget): StringForm[] {
  const listed = forms.flatMap(({ among }) => among ?? [])
  if (listed.length > 0) return [...new Set(listed)].map((one) => ({ ...anyString, among: [one] }))
  const [form] = forms
  if (!form) return []
  return firstCharacters(sized(form, budget), budget).map((automaton) => ({ ...anyString, automaton }))
}

/** Texts of the right lengths, by one automaton. */
export function sized({ automaton, min, max }: StringForm, budget: Budget): Automaton {
  if (!automaton) return ofLength(min, max === Infinity ? null : Math.min(max, LENGTH_MAX))
  if (min === 0 && max === Infinity) return automaton
  const { least, most } = lengthsOf(automaton)
  if (least >= min && most <= max) return automaton
  if (max === Infinity || most <= max) return intersection(automaton, ofLength(min, null), budget)
  const room = Math.floor(SIZED_STATES_MAX / automaton.edges.length)
  return intersection(automaton, ofLength(min, Math.min(max, Math.max(min, least, room))), budget)
}

/** The texts of an automaton by their first characters; where there is none to choose, by the second, and so on. */
export function firstCharacters(automaton: Automaton, budget: Budget): Automaton[] {
  const read: (readonly Range[])[] = []
  let state = 0
  for (;;) {
    const edges: readonly Edge[] = automaton.edges[state] ?? []
    const [only] = edges
    if (!only || edges.length > 1 || only[0] !== only[1] || automaton.accepting[state] || read.length > 200)
      break
    read.push([[only[0], only[1]]])
    state = only[2]
  }
  const edges = automaton.edges[state] ?? []
  const choices =
    distinct(edges).length > 1 || edges.length !== 1
      ? beginnings
      : edges.flatMap(([low, high]) => singles(low, high))
  const parts: Automaton[] = []
  for (const choice of choices)
    for (const [low, high, to] of edges) {
      const met = choice.flatMap(([from, until]): Range[] =>
        from <= high && until >= low ? [[Math.max(from, low), Math.min(until, high)]] : [],
      )
      if (met.length > 0) parts.push(part(automaton, [...read, met], to, budget))
      // Edges of one choice that lead elsewhere begin alike: one of them stands for all.
      if (met.length > 0) break
    }
  if (automaton.accepting[state]) parts.push(literal(read))
  return parts.slice(0, PARTS_MAX)
}

const distinct = (edges: readonly Edge[]): number[] => [...new Set(edges.map(([, , to]) => to))]

const singles = (low: number, high: number): Range[][] =>
  Array.from({ length: Math.min(PARTS_MAX, high - low + 1) }, (_, index) => [[low + index, low + index]])

/** Exactly these characters, each of them the only one in its range. */
function literal(read: readonly (readonly Range[])[]): Automaton {
  return {
    edges: [...read.map((ranges, index): Edge[] => ranges.map(([a, b]) => [a, b, index + 1])), []],
    accepting: [...read.map(() => false), true],
  }
}

function part(of: Automaton, read: readonly (readonly Range[])[], state: number, budget: Budget): Automaton {
  budget.spend(read.length)
  const offset = read.length
  const before = read.map((ranges, index): Edge[] =>
    ranges.map(([a, b]) => [a, b, index + 1 === offset ? offset + state : index + 1]),
  )
  let edges: Edge[][] | undefined
  let accepting: boolean[] | undefined
  return {
    // Most parts are only written, by their tails: copies of large automata are made when they are asked for.
    get edges() {
      edges ??= [...before, ...of.edges.map((list) => list.map(([a, b, to]): Edge => [a, b, to + offset]))]
      return edges
    },
    get accepting() {
      accepting ??= [...read.map(() => false), ...of.accepting]
      return accepting
    },
    tail: { read, of, state },
  }
}

/** By the first of the required properties that tells values apart. */
function objectParts(to: Normaliser, forms: readonly ObjectForm[], nesting: number): ObjectForm[] {
  const [form] = forms
  if (!form) return []
  const values = forms.filter(({ value }) => value)
  if (values.length === forms.length) return [...values]
  const open = forms.find(({ value }) => !value) ?? form
  if (nesting < NESTING_MAX)
    for (const name of open.required) {
      const parts = partition(to, to.form(propertyGoal(open, name)), nesting + 1)
      if (parts.length < 2) continue
      return parts
        .map((part) => ({
          ...open,
          narrowed: new Map([...(open.narrowed ?? []), [name, to.goalOf(part)]]),
        }))
        .filter((one) => !objectIsImpossible(one, to))
    }
  return [open]
}
