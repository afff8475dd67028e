/**
 * The marks of a scale from zero: a few, evenly apart, at round numbers, the last no lower than the highest value.
 * What is counted in ones (`whole`) has no mark between them.
 */
export function roundSteps(highest: number, { whole = false }: { whole?: boolean } = {}): number[] {
  if (!(highest > 0)) return [0, 1]
  const rough = highest / stepsWanted
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const fits = (step: number): boolean => step >= rough && (!whole || Number.isInteger(step))
  const step = roundMantissas.map((mantissa) => mantissa * magnitude).find(fits) ?? 1
  return Array.from({ length: Math.ceil(highest / step - slack) + 1 }, (_, index) => index * step)
}

const stepsWanted = 4
const roundMantissas = [1, 2, 2.5, 5, 10]
/** What a division of two decimals may be off by. */
const slack = 1e-9
