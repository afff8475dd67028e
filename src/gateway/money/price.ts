/** What usage costs, in whole ticks. */
import type { Prices } from "../../base/catalog.ts"
import type { Ticks } from "../../base/money.ts"
import type { Usage } from "../meter.ts"

export function costOf(prices: Prices, usage: Usage): Ticks {
  return (
    prices.inputTokenTicks * BigInt(usage.inputTokens) +
    prices.cachedInputTokenTicks * BigInt(usage.cachedInputTokens) +
    prices.outputTokenTicks * BigInt(usage.outputTokens) +
    // A part of a millisecond is a millisecond: the price of one cannot be divided.
    prices.millisecondTicks * BigInt(Math.ceil(usage.executionMs))
  )
}
