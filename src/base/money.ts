/** Money in ticks: one tick is 1e-10 USD, held in a bigint; cents exist only at the API. */

export type Ticks = bigint

export const ticksPerUsd = 10_000_000_000n
export const ticksPerCent: Ticks = ticksPerUsd / 100n

/** Balances are shown in whole cents, rounded down: never more than there is. */
export function centsFloor(ticks: Ticks): number {
  const cents = ticks / ticksPerCent
  return Number(ticks < 0n && cents * ticksPerCent !== ticks ? cents - 1n : cents)
}

/** Spend is shown as an exact double of cents. */
export function centsExact(ticks: Ticks): number {
  return Number(ticks / ticksPerCent) + Number(ticks % ticksPerCent) / Number(ticksPerCent)
}

/** For graphs; nothing is charged by it. */
export const dollarsOf = (ticks: Ticks | string): number => Number(ticks) / Number(ticksPerUsd)

export const fromCents = (cents: number): Ticks => BigInt(cents) * ticksPerCent

/**
 * Reads a decimal USD price per `units` (a million tokens, or 1000 milliseconds) into ticks per unit, and refuses one
 * that is not whole: a price that cannot be charged exactly is a mistake to be found when it is loaded.
 */
export function ticksPerUnit(price: string, units: bigint): Ticks {
  const match = /^(\d{1,9})(?:\.(\d{1,12}))?$/.exec(price)
  if (!match)
    throw new RangeError(`Cannot read the price ${JSON.stringify(price)}: a decimal number of USD is needed`)
  const [, whole = "0", fraction = ""] = match
  const scale = 10n ** BigInt(fraction.length)
  const scaled = BigInt(whole + fraction) * ticksPerUsd
  if (scaled % (scale * units) !== 0n)
    throw new RangeError(
      `Cannot charge the price ${price}: it is not a whole number of ticks (1e-10 USD) per unit`,
    )
  return scaled / (scale * units)
}

const usdDecimals = 10

/** An exact decimal number of USD, without zeros at its end. */
export function usdText(ticks: Ticks): string {
  const digits = String(ticks < 0n ? -ticks : ticks).padStart(usdDecimals + 1, "0")
  const fraction = digits.slice(-usdDecimals).replace(/0+$/, "")
  return `${ticks < 0n ? "-" : ""}${digits.slice(0, -usdDecimals)}${fraction === "" ? "" : `.${fraction}`}`
}

/** Reads what `usdText` writes, also with fewer or more zeros at its end; it has at most 10 decimals. */
export function ticksOfUsd(text: string): Ticks {
  const [whole = "0", fraction = ""] = text.split(".")
  return BigInt(whole) * ticksPerUsd + BigInt(fraction.padEnd(usdDecimals, "0"))
}

/** Cents as people read them: to the last tick that matters, for a small charge must not read as nothing. */
export function dollarText(cents: number): string {
  // Split in cents: a quotient by 100 would have digits of its own.
  const [whole = "", parts = ""] = Math.abs(cents)
    .toFixed(usdDecimals - 2)
    .split(".")
  const digits = whole.padStart(3, "0")
  const dollars = digits.slice(0, -2).replaceAll(/\B(?=(?:\d{3})+$)/g, ",")
  return `${cents < 0 ? "-" : ""}$${dollars}.${digits.slice(-2)}${parts.replace(/0+$/, "")}`
}
