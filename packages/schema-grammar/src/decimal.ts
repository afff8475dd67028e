/** Decimal numbers as schemas write them, compared and divided without rounding. */

/** `units` divided by ten to the power of `scale`; the scale is not negative. */
export interface Decimal {
  readonly units: bigint
  readonly scale: number
}

export function decimalOf(value: number): Decimal {
  const [mantissa = "0", exponent = "0"] = String(value).split("e")
  const [whole = "0", fraction = ""] = mantissa.split(".")
  const shift = Number(exponent) - fraction.length
  const units = BigInt(whole + fraction)
  return shift >= 0 ? { units: units * 10n ** BigInt(shift), scale: 0 } : { units, scale: -shift }
}

/** The same number in units of ten to the power of minus `scale`, which is not smaller than its own. */
export const unitsAt = ({ units, scale }: Decimal, wanted: number): bigint =>
  units * 10n ** BigInt(wanted - scale)

export function compare(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale)
  const [left, right] = [unitsAt(a, scale), unitsAt(b, scale)]
  return left < right ? -1 : left > right ? 1 : 0
}

export function isMultiple(value: Decimal, of: Decimal): boolean {
  const scale = Math.max(value.scale, of.scale)
  return unitsAt(value, scale) % unitsAt(of, scale) === 0n
}

/** The smallest number that is a multiple of both. */
export function leastCommonMultiple(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale)
  const [left, right] = [unitsAt(a, scale), unitsAt(b, scale)]
  let [x, y] = [left, right]
  while (y !== 0n) [x, y] = [y, x % y]
  return simplest({ units: (left / x) * right, scale })
}

/** Without zeros at the end of its fraction. */
function simplest({ units, scale }: Decimal): Decimal {
  let [left, places] = [units, scale]
  while (places > 0 && left % 10n === 0n) {
    left /= 10n
    places--
  }
  return { units: left, scale: places }
}

/** Without an exponent: as JSON may have it, and a reader counts it. */
export function textOf(decimal: Decimal): string {
  const { units, scale } = simplest(decimal)
  const sign = units < 0n ? "-" : ""
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, "0")
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

export const floor = ({ units, scale }: Decimal): bigint => {
  const one = 10n ** BigInt(scale)
  return units >= 0n ? units / one : -((-units + one - 1n) / one)
}

export const ceiling = ({ units, scale }: Decimal): bigint => -floor({ units: -units, scale })
