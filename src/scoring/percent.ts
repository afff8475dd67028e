/** A share as every text of the product writes it: `95%`, `95.5%`. */
export const percentText = (share: number): string => `${Number((share * 100).toFixed(1))}%`
