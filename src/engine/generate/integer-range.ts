/** A grammar of the whole numbers between two bounds, written without leading zeros. */
import { type Rule, all, any, repeat, set, text } from "./grammar.ts"

/** Digits that an open end still allows. */
const DIGITS_MAX = 15

/** Null when no number lies between; an absent bound is open to fifteen digits. */
export function integerBetween(low: number | undefined, high: number | undefined): Rule | null {
  const most = 10 ** DIGITS_MAX - 1
  const from = Math.max(low ?? -most, -most)
  const to = Math.min(high ?? most, most)
  if (from > to) return null
  const options: Rule[] = []
  if (from < 0) {
    const negative = naturals(Math.max(1, -to), -from)
    options.push(...negative.map((rule) => all(text("-"), rule)))
  }
  if (to >= 0) options.push(...naturals(Math.max(0, from), to))
  return any(...options)
}

/** Numbers of equal length share rules: each length is handled on its own. */
function naturals(from: number, to: number): Rule[] {
  if (from > to) return []
  const rules: Rule[] = []
  for (let length = String(from).length; length <= String(to).length; length++) {
    const low = length === 1 ? 0 : 10 ** (length - 1)
    const high = 10 ** length - 1
    rules.push(between(String(Math.max(from, low)), String(Math.min(to, high))))
  }
  return rules
}

/** Between two numbers with the same count of digits. */
function between(low: string, high: string): Rule {
  if (low === "") return text("")
  const first = low.charAt(0)
  const last = high.charAt(0)
  const lowRest = low.slice(1)
  const highRest = high.slice(1)
  const rest = lowRest.length
  if (first === last) return all(text(first), between(lowRest, highRest))
  const zeros = "0".repeat(rest)
  const nines = "9".repeat(rest)
  if (lowRest === zeros && highRest === nines) return all(set([first, last]), anyDigits(rest))
  const options: Rule[] = [
    all(text(first), between(lowRest, nines)),
    all(text(last), between(zeros, highRest)),
  ]
  const inner = [shift(first, 1), shift(last, -1)] as const
  if (inner[0] <= inner[1]) options.push(all(set(inner), anyDigits(rest)))
  return any(...options)
}

const anyDigits = (count: number): Rule => (count === 0 ? text("") : repeat(set(["0", "9"]), count, count))
const shift = (digit: string, by: number): string => String(Number(digit) + by)
