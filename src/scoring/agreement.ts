/** Cohen's kappa: how far two reviewers agree beyond what chance explains. */

/** The labels that two reviewers gave to one item. */
export type LabelPair = readonly [string, string]

/** 1: they always agree; 0: as often as by chance. Null below two pairs, or where chance explains all. */
export function cohensKappa(pairs: readonly LabelPair[]): number | null {
  if (pairs.length < 2) return null
  const [first, second] = [countsOf(pairs.map(([one]) => one)), countsOf(pairs.map(([, other]) => other))]
  const agreed = pairs.filter(([one, other]) => one === other).length / pairs.length
  let byChance = 0
  for (const [label, count] of first) byChance += (count * (second.get(label) ?? 0)) / pairs.length ** 2
  return byChance === 1 ? null : (agreed - byChance) / (1 - byChance)
}

/** Over several questions, each with labels of its own: the mean, weighted by the pairs. */
export function stratifiedKappa(strata: readonly (readonly LabelPair[])[]): number | null {
  let [sum, weight] = [0, 0]
  for (const pairs of strata) {
    const kappa = cohensKappa(pairs)
    if (kappa === null) continue
    sum += kappa * pairs.length
    weight += pairs.length
  }
  return weight === 0 ? null : sum / weight
}

function countsOf(labels: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
  return counts
}
