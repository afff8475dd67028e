/** Amounts of USD as the API has them: decimal text. */
const decimals = 10

export const usdOf = (amount: number): string => amount.toFixed(decimals).replace(/\.?0+$/, "")
