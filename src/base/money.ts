/** Money in ticks: one tick is 1e-10 USD, held in a bigint; cents exist only at the API. */

export type Ticks = bigint

const ticksPerUsd = 10_000_000_000n
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
