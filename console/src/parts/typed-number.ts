/** Numbers as people type them: one decimal separator, a point or a comma; what can be read in two ways is refused. */
import { cents, count, percent } from "./format.ts"
import { t } from "../i18n/translate.ts"

interface Kind {
  /** By how much a number in the form is larger than the same in the API, as a power of ten. */
  readonly shift: number
  readonly decimalsMax: number
  /** The value of the API, in words. */
  readonly words: (value: number) => string
  readonly wanted: string
}

const plainDecimals = 9
/** As many as `numberText` may show of a threshold that teaching has chosen. */
const percentageDecimals = 13

/** Amounts are cents in the API, and percentages shares of 1. */
export const numberKinds = {
  amount: { shift: -2, decimalsMax: 2, words: cents, wanted: t("An amount is needed, such as 12.50.") },
  percentage: {
    shift: 2,
    decimalsMax: percentageDecimals,
    words: percent,
    wanted: t("A number is needed, such as 12.5."),
  },
  whole: { shift: 0, decimalsMax: 0, words: count, wanted: t("A whole number is needed.") },
  number: {
    shift: 0,
    decimalsMax: plainDecimals,
    words: String,
    wanted: t("A number is needed, such as 12.5."),
  },
} as const satisfies Record<string, Kind>
export type NumberKind = keyof typeof numberKinds

/** In the unit of the API, both included unless they are said not to be. */
export interface NumberBounds {
  readonly min?: number
  readonly max?: number
  readonly above?: number
  readonly below?: number
  readonly required?: boolean
}

type TypedNumber =
  | { readonly value: number | null; readonly problem: null }
  | { readonly value: null; readonly problem: string }

const digitsMax = 12
const groupDigits = 3

const wrong = (problem: string): TypedNumber => ({ value: null, problem })

/** The value of a field, null where it is empty; or in words why there is none. */
export function readNumber(text: string, kind: NumberKind, bounds: NumberBounds = {}): TypedNumber {
  const { words, wanted } = numberKinds[kind]
  const typed = text
    .trim()
    .replace(/^\$\s*/, "")
    .replace(/\s*%$/, "")
  if (typed === "") return bounds.required ? wrong(wanted) : { value: null, problem: null }
  const [, whole, separator = "", decimals = ""] = /^(\d+)(?:([.,])(\d+))?$/.exec(typed) ?? []
  if (whole === undefined || whole.length > digitsMax) {
    const isGrouped = /^\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?$/.test(typed)
    return wrong(isGrouped ? t("Leave out the separators of thousands.") : wanted)
  }
  if (isAmbiguous({ kind, whole, separator, decimals }))
    return wrong(
      t("“{typed}” can be read in two ways: write {one} or {other}.", {
        typed,
        one: `${whole}${decimals}`,
        other: `${whole}.${decimals.slice(0, 1)}`,
      }),
    )
  if (decimals.length > numberKinds[kind].decimalsMax) return wrong(wanted)
  const value = inUnitOfApi(whole, decimals, numberKinds[kind].shift)
  return isWithin(value, bounds) ? { value, problem: null } : wrong(boundsWords(bounds, words))
}

/** A comma before three digits groups thousands in some countries and begins decimals in others; so does a point. */
function isAmbiguous({
  kind,
  whole,
  separator,
  decimals,
}: {
  readonly kind: NumberKind
  readonly whole: string
  readonly separator: string
  readonly decimals: string
}): boolean {
  if (decimals.length !== groupDigits || whole.length > groupDigits || whole.startsWith("0")) return false
  return separator === "," || kind === "amount" || kind === "whole"
}

/** By digits, not by a product: 4.35 dollars are 435 cents. */
const inUnitOfApi = (whole: string, decimals: string, shift: number): number =>
  Number(`${whole}.${decimals || "0"}e${-shift}`)

function isWithin(value: number, { min, max, above, below }: NumberBounds): boolean {
  if (min !== undefined && value < min) return false
  if (max !== undefined && value > max) return false
  return (above === undefined || value > above) && (below === undefined || value < below)
}

function boundsWords(bounds: NumberBounds, words: (value: number) => string): string {
  const { min, max, above, below } = bounds
  if (min !== undefined && max !== undefined)
    return t("From {least} to {most}.", { least: words(min), most: words(max) })
  const least = min ?? above
  const most = max ?? below
  if (least === undefined || most === undefined) return boundWords(bounds, words)
  const values = { least: words(least), most: words(most) }
  if (min === undefined)
    return max === undefined
      ? t("More than {least} and less than {most}.", values)
      : t("More than {least} and at most {most}.", values)
  return t("At least {least} and less than {most}.", values)
}

/** Of numbers that are bounded on one side. */
function boundWords({ min, max, above, below }: NumberBounds, words: (value: number) => string): string {
  if (min !== undefined) return t("At least {least}.", { least: words(min) })
  if (above !== undefined) return t("More than {least}.", { least: words(above) })
  if (max !== undefined) return t("At most {most}.", { most: words(max) })
  return below === undefined
    ? t("A number is needed, such as 12.5.")
    : t("Less than {most}.", { most: words(below) })
}

/** The value of a field whose form cannot be sent while it has a problem. */
export function numberOf(text: string, kind: NumberKind, bounds: NumberBounds = {}): number | null {
  const { value, problem } = readNumber(text, kind, bounds)
  if (problem !== null) throw new RangeError(problem)
  return value
}

/** A value of the API as its field shows it; empty where there is none. */
export function numberText(value: number | null | undefined, kind: NumberKind): string {
  if (value === null || value === undefined) return ""
  if (kind === "amount") return (value / 100).toFixed(2)
  return String(Number((value * 10 ** numberKinds[kind].shift).toPrecision(10)))
}
