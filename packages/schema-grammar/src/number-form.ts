/** A set of numbers by its bounds and divisors, and the automaton of how they are written. */
import { type Automaton, Nfa, type Range, complement, intersection, isEmpty, literals } from "./automaton.ts"
import { Budget } from "./budget.ts"
import {
  type Decimal,
  ceiling,
  compare,
  decimalOf,
  floor,
  isMultiple,
  leastCommonMultiple,
  textOf,
  unitsAt,
} from "./decimal.ts"

export interface Bound {
  readonly value: Decimal
  readonly exclusive: boolean
}

export interface NumberForm {
  /** Only whole numbers, only others, or both. */
  readonly whole: boolean | null
  readonly min: Bound | null
  readonly max: Bound | null
  readonly multipleOf: Decimal | null
  readonly excluded: readonly Decimal[]
  /** Only these. */
  readonly among: readonly Decimal[] | null
}

export const anyNumber: NumberForm = {
  whole: null,
  min: null,
  max: null,
  multipleOf: null,
  excluded: [],
  among: null,
}

export const numbers = (values: readonly number[]): NumberForm => ({
  ...anyNumber,
  among: values.map(decimalOf),
})

/** Null when no number is in both. */
export function intersectNumbers(a: NumberForm, b: NumberForm): NumberForm | null {
  if (a.whole !== null && b.whole !== null && a.whole !== b.whole) return null
  const met: NumberForm = {
    whole: a.whole ?? b.whole,
    min: tighter(a.min, b.min, 1),
    max: tighter(a.max, b.max, -1),
    multipleOf:
      a.multipleOf && b.multipleOf
        ? leastCommonMultiple(a.multipleOf, b.multipleOf)
        : (a.multipleOf ?? b.multipleOf),
    excluded: [...a.excluded, ...b.excluded],
    among: null,
  }
  if (a.among ?? b.among) {
    const [listed, other] = a.among ? [a, b] : [b, a]
    const both = other.among && new Set(other.among.map(textOf))
    const left = (listed.among ?? []).filter((value) =>
      both ? both.has(textOf(value)) : numberIn(other, value),
    )
    return left.length === 0 ? null : { ...anyNumber, among: left }
  }
  return isPossible(met) ? met : null
}

function tighter(a: Bound | null, b: Bound | null, sign: 1 | -1): Bound | null {
  if (!a || !b) return a ?? b
  const order = compare(a.value, b.value) * sign
  if (order === 0) return a.exclusive ? a : b
  return order > 0 ? a : b
}

function isPossible({ whole, min, max }: NumberForm): boolean {
  if (!min || !max) return true
  const order = compare(min.value, max.value)
  if (order > 0 || (order === 0 && (min.exclusive || max.exclusive))) return false
  return whole !== true || firstWhole(min) <= lastWhole(max)
}

const firstWhole = ({ value, exclusive }: Bound): bigint => (exclusive ? floor(value) + 1n : ceiling(value))
const lastWhole = ({ value, exclusive }: Bound): bigint => (exclusive ? ceiling(value) - 1n : floor(value))

export function numberIn(form: NumberForm, value: Decimal): boolean {
  const { whole, min, max, multipleOf, excluded, among } = form
  if (among && !among.some((one) => compare(one, value) === 0)) return false
  if (excluded.some((one) => compare(one, value) === 0)) return false
  if (whole !== null && isMultiple(value, { units: 1n, scale: 0 }) !== whole) return false
  if (min && compare(value, min.value) < (min.exclusive ? 1 : 0)) return false
  if (max && compare(value, max.value) > (max.exclusive ? -1 : 0)) return false
  return !multipleOf || isMultiple(value, multipleOf)
}

export const isPlain = ({ min, max, multipleOf, excluded, among, whole }: NumberForm): boolean =>
  !min && !max && !multipleOf && excluded.length === 0 && !among && whole !== false

const boundKey = (one: Bound | null): string => (one ? `${one.exclusive ? "<" : ""}${textOf(one.value)}` : "")

/** The same for forms that are equal. */
export function formKey({ whole, min, max, multipleOf, excluded }: NumberForm): string {
  const others = [...(multipleOf ? [multipleOf] : []), ...excluded].map(textOf)
  return [String(whole), boundKey(min), boundKey(max), String(multipleOf !== null), ...others].join(" ")
}

/** A double keeps fifteen digits apart from each other: more could round onto a bound. */
const DIGITS_MAX = 15
const FRACTION_DIGITS = 6
const MULTIPLES_MAX = 200
const REMAINDERS_MAX = 400

/** How the numbers of a form are written, without exponents and needless zeros; not all of them need be covered. */
export function numberAutomaton(form: NumberForm, budget: Budget): Automaton {
  if (form.among) return literals(form.among.map(textOf), budget)
  const multiples = form.multipleOf ? multiplesAutomaton(form, form.multipleOf, budget) : null
  const parts = [
    canonical(form),
    ...(form.min ? [signed(form.min, "min", budget)] : []),
    ...(form.max ? [signed(form.max, "max", budget)] : []),
    ...(form.whole === false ? [fractions(budget)] : []),
    ...(multiples ? [multiples] : []),
    ...(form.excluded.length > 0 ? [complement(literals(form.excluded.map(textOf), budget), budget)] : []),
  ]
  const met = parts.reduce((a, b) => intersection(a, b, budget))
  if (!isEmpty(met)) return met
  // Bounds that are too large or too close together for all digits to be written: at least they themselves are there.
  const ends = [form.min?.value, form.max?.value].filter((one) => one !== undefined)
  return literals(ends.filter((one) => numberIn(form, one)).map(textOf), budget)
}

const digit: readonly Range[] = [[0x30, 0x39]]
const range = (low: number, high: number): readonly Range[] => [[0x30 + low, 0x30 + high]]
const character = (one: string): readonly Range[] => [[one.charCodeAt(0), one.charCodeAt(0)]]

/** By whether whole numbers alone are meant, and how many places a fraction has. */
const canonicals = new Map<string, Automaton>()

function canonical({ whole, min, max, multipleOf }: NumberForm): Automaton {
  const bounds = [min?.value, max?.value, multipleOf].filter((one) => one !== null && one !== undefined)
  const places = Math.max(0, ...bounds.map(({ scale }) => scale))
  const fractionDigits = Math.min(DIGITS_MAX - 1, Math.max(FRACTION_DIGITS, places === 0 ? 0 : places + 1))
  const key = `${whole === true}-${fractionDigits}`
  const known = canonicals.get(key)
  if (known) return known
  const made = writeCanonical(whole === true, fractionDigits)
  canonicals.set(key, made)
  return made
}

function writeCanonical(whole: boolean, fractionDigits: number): Automaton {
  const nfa = new Nfa(new Budget())
  const [start, end] = [nfa.state(), nfa.state()]
  for (const negative of [false, true]) {
    const sign = negative ? nfa.state() : start
    if (negative) nfa.read(start, character("-"), sign)
    const zero = nfa.state()
    nfa.read(sign, character("0"), zero)
    if (!negative) nfa.join(zero, end)
    if (!whole) writeFraction(nfa, zero, fractionDigits, end)
    let state = nfa.state()
    nfa.read(sign, range(1, 9), state)
    for (let count = 1; count <= DIGITS_MAX; count++) {
      nfa.join(state, end)
      if (!whole && count + fractionDigits <= DIGITS_MAX) writeFraction(nfa, state, fractionDigits, end)
      if (count === DIGITS_MAX) break
      const next = nfa.state()
      nfa.read(state, digit, next)
      state = next
    }
  }
  return nfa.determinise(start, end, true)
}

/** A point and digits of which the last is not zero. */
function writeFraction(nfa: Nfa, from: number, places: number, end: number): void {
  let state = nfa.state()
  nfa.read(from, character("."), state)
  for (let count = 0; count < places; count++) {
    nfa.read(state, range(1, 9), end)
    const next = nfa.state()
    nfa.read(state, digit, next)
    state = next
  }
}

/** Texts with a point. */
function fractions(budget: Budget): Automaton {
  const nfa = new Nfa(budget)
  const [start, end] = [nfa.state(), nfa.state()]
  nfa.read(start, [...digit, ...character("-")], start)
  nfa.read(start, character("."), end)
  nfa.read(end, digit, end)
  return nfa.determinise(start, end, true)
}

/** Numbers, of either sign, beyond a bound. */
function signed({ value, exclusive }: Bound, side: "min" | "max", budget: Budget): Automaton {
  const nfa = new Nfa(budget)
  const [start, end] = [nfa.state(), nfa.state()]
  const minus = nfa.state()
  nfa.read(start, character("-"), minus)
  const { units, scale } = value
  const size: Bound = { value: { units: units < 0n ? -units : units, scale }, exclusive }
  const more = (): Automaton => magnitude(size, "min", budget)
  const less = (): Automaton => magnitude(size, "max", budget)
  const every = (): Automaton =>
    magnitude({ value: { units: 0n, scale: 0 }, exclusive: false }, "min", budget)
  if (side === "min") {
    nfa.embed(start, units < 0n ? every() : more(), end)
    if (units < 0n) nfa.embed(minus, less(), end)
  } else {
    nfa.embed(minus, units <= 0n ? more() : every(), end)
    if (units >= 0n) nfa.embed(start, less(), end)
  }
  return nfa.determinise(start, end, true)
}

/** Numbers without a sign that are at least, or at most, the bound. */
function magnitude({ value, exclusive }: Bound, side: "min" | "max", budget: Budget): Automaton {
  const [whole = "0", fraction = ""] = textOf(value).split(".")
  const nfa = new Nfa(budget)
  const [start, end] = [nfa.state(), nfa.state()]
  const open = (from: number): void => {
    const inside = nfa.state()
    nfa.join(from, inside)
    nfa.read(inside, digit, inside)
    nfa.join(inside, end)
    const point = nfa.state()
    nfa.read(inside, character("."), point)
    nfa.read(point, digit, point)
    nfa.join(point, end)
  }
  const exactly = (from: number, count: number): number => {
    let state = from
    for (let done = 0; done < count; done++) {
      const next = nfa.state()
      nfa.read(state, digit, next)
      state = next
    }
    return state
  }
  // A different count of digits decides; there are no leading zeros.
  if (side === "min") open(exactly(start, whole.length + 1))
  else
    for (let count = 1; count < whole.length; count++) {
      const ended = exactly(start, count)
      nfa.join(ended, end)
      const point = nfa.state()
      nfa.read(ended, character("."), point)
      nfa.read(point, digit, point)
      nfa.join(point, end)
    }
  let same = start
  for (const [index, one] of Array.from(whole, Number).entries()) {
    const beyond = side === "min" ? range(one + 1, 9) : range(0, one - 1)
    if (side === "min" ? one < 9 : one > 0) {
      const state = nfa.state()
      nfa.read(same, beyond, state)
      const rest = exactly(state, whole.length - index - 1)
      nfa.join(rest, end)
      const point = nfa.state()
      nfa.read(rest, character("."), point)
      nfa.read(point, digit, point)
      nfa.join(point, end)
    }
    const next = nfa.state()
    nfa.read(same, range(one, one), next)
    same = next
  }
  writeFractionBeyond(nfa, same, fraction, { side, exclusive, end })
  return nfa.determinise(start, end, true)
}

/** The whole parts are equal: the fraction decides, and one that ends is followed by zeros. */
function writeFractionBeyond(
  nfa: Nfa,
  from: number,
  fraction: string,
  { side, exclusive, end }: { side: "min" | "max"; exclusive: boolean; end: number },
): void {
  const isEqual = (index: number): boolean => /^0*$/.test(fraction.slice(index))
  const endsAt = (state: number, index: number): void => {
    // What is written so far, against the bound: equal when only zeros are left of it, smaller otherwise.
    const fits = isEqual(index) ? !exclusive : side === "max"
    if (fits) nfa.join(state, end)
  }
  endsAt(from, 0)
  let same = nfa.state()
  nfa.read(from, character("."), same)
  for (const [index, one] of Array.from(fraction, Number).entries()) {
    if (side === "min" ? one < 9 : one > 0) {
      const state = nfa.state()
      nfa.read(same, side === "min" ? range(one + 1, 9) : range(0, one - 1), state)
      nfa.read(state, digit, state)
      nfa.join(state, end)
    }
    const next = nfa.state()
    nfa.read(same, range(one, one), next)
    same = next
    endsAt(same, index + 1)
  }
  // Longer than the bound: larger than it, unless it goes on with zeros, which are never written last.
  if (side === "min") {
    const more = nfa.state()
    nfa.read(same, digit, more)
    nfa.read(more, digit, more)
    nfa.join(more, end)
  }
}

/** Remainders are states; where there are too many of them, the multiples nearest to zero are listed. */
function multiplesAutomaton(form: NumberForm, of: Decimal, budget: Budget): Automaton {
  const size = of.units
  const { scale } = of
  if (size * BigInt(scale + 1) > BigInt(REMAINDERS_MAX)) return listedMultiples(form, of, budget)
  const modulus = Number(size)
  const nfa = new Nfa(budget)
  const end = nfa.state()
  const start = nfa.state()
  // One state for each remainder and count of places; count -1 stands before the point.
  const states = Array.from({ length: scale + 2 }, () => Array.from({ length: modulus }, () => nfa.state()))
  const at = (places: number, remainder: number): number => states[places + 1]?.[remainder] ?? 0
  nfa.read(start, character("-"), start)
  for (let value = 0; value <= 9; value++) nfa.read(start, range(value, value), at(-1, value % modulus))
  for (let places = -1; places <= scale; places++)
    for (let remainder = 0; remainder < modulus; remainder++) {
      const from = at(places, remainder)
      const missing = scale - Math.max(0, places)
      if ((BigInt(remainder) * 10n ** BigInt(missing)) % size === 0n) nfa.join(from, end)
      if (places === -1) nfa.read(from, character("."), at(0, remainder))
      if (places === scale) continue
      const next = places === -1 ? -1 : places + 1
      for (let value = 0; value <= 9; value++)
        nfa.read(from, range(value, value), at(next, (remainder * 10 + value) % modulus))
    }
  return nfa.determinise(start, end, true)
}

function listedMultiples({ min, max }: NumberForm, of: Decimal, budget: Budget): Automaton {
  const scale = Math.max(of.scale, min?.value.scale ?? 0, max?.value.scale ?? 0)
  const step = unitsAt(of, scale)
  const low = min ? divideUp(unitsAt(min.value, scale), step) : null
  const high = max ? -divideUp(-unitsAt(max.value, scale), step) : null
  const half = BigInt(MULTIPLES_MAX / 2)
  const from = low !== null && low > -half ? low : high !== null && high < half ? high - 2n * half : -half
  const texts: string[] = []
  const last = from + 2n * half
  const until = high !== null && high < last ? high : last
  for (let count = from; count <= until; count++) texts.push(textOf({ units: count * step, scale }))
  return literals(texts, budget)
}

const divideUp = (value: bigint, by: bigint): bigint => {
  const quotient = value / by
  return value % by > 0n ? quotient + 1n : quotient
}
