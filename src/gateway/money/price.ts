/** What usage costs, in whole ticks. */
import type { Prices } from "../../base/catalog.ts"
import type { Ticks } from "../../base/money.ts"
import type { Usage } from "../meter.ts"

export function costOf(prices: Prices, usage: Usage): Ticks {
  return (
    priceOf(prices.inputTokenTicks, usage.inputTokens) +
    priceOf(prices.cachedInputTokenTicks, usage.cachedInputTokens) +
    priceOf(prices.outputTokenTicks, usage.outputTokens) +
    // A part of a millisecond is a millisecond: the price of one cannot be divided.
    priceOf(prices.millisecondTicks, Math.ceil(usage.executionMs))
  )
}

/** Most requests use only some of what has a price. */
const priceOf = (eachTicks: Ticks, count: number): Ticks =>
  count === 0 || eachTicks === 0n ? 0n : eachTicks * BigInt(count)
