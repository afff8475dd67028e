/** Measures of how good labelled answers are: accuracy, macro-F1, Brier score, calibration error, confusion. Pure. */

/** One answered question with what it should have been. */
export interface Judged {
  /** The classes, in the order of their probabilities. */
  readonly classes: readonly string[]
  readonly probabilities: readonly number[]
  /** An element of `classes`. */
  readonly gold: string
  /** Of its text, where the answer told it. */
  readonly language?: string | null
}

export interface ReliabilityBin {
  /** Bounds of the stated confidence. */
  readonly from: number
  readonly to: number
  readonly count: number
  readonly meanConfidence: number
  readonly accuracy: number
}

export interface Evaluation {
  readonly count: number
  readonly accuracy: number
  /** Accuracy of always answering the most frequent class. */
  readonly majority: number
  /** Mean over the classes that occur, as gold or as answer. */
  readonly macroF1: number
  /** Mean squared distance between the probabilities and the truth; 0 is perfect. */
  readonly brier: number
  /** Expected calibration error over ten bins of the winner's probability. */
  readonly calibrationError: number
  readonly logLoss: number
  readonly reliability: readonly ReliabilityBin[]
  /** gold -> answered -> how often. */
  readonly confusion: ReadonlyMap<string, ReadonlyMap<string, number>>
}

const binCount = 10
/** Keeps the log loss of a confident mistake finite. */
const probabilityMin = 1e-12

export function evaluate(judged: readonly Judged[]): Evaluation {
  const count = judged.length
  const mean = (measure: (one: Judged) => number): number =>
    count === 0 ? 0 : judged.reduce((sum, one) => sum + measure(one), 0) / count
  const confusion = confusionOf(judged)
  const reliability = reliabilityOf(judged)
  return {
    count,
    accuracy: mean((one) => (answerOf(one) === one.gold ? 1 : 0)),
    majority: majorityOf(judged),
    macroF1: macroF1Of(confusion),
    brier: mean(brierOf),
    calibrationError: reliability.reduce(
      (sum, bin) => sum + (bin.count / Math.max(1, count)) * Math.abs(bin.accuracy - bin.meanConfidence),
      0,
    ),
    logLoss: mean(
      (one) => -Math.log(Math.max(probabilityMin, one.probabilities[one.classes.indexOf(one.gold)] ?? 0)),
    ),
    reliability,
    confusion,
  }
}

interface LanguageEvaluation {
  readonly language: string
  readonly evaluation: Evaluation
}

/** The same for each language that rows have, the most frequent first; empty where they have one only, or none is known. */
export function evaluateByLanguage(judged: readonly Judged[]): LanguageEvaluation[] {
  const groups = [...Map.groupBy(judged, ({ language }) => language ?? null)]
  if (groups.length < 2) return []
  return groups
    .map(([language, rows]) => ({ language: language ?? "unknown", evaluation: evaluate(rows) }))
    .toSorted((a, b) => b.evaluation.count - a.evaluation.count || (a.language < b.language ? -1 : 1))
}

/** The class with the highest probability; ties go to the earlier one. */
export function answerOf({ classes, probabilities }: Judged): string {
  let best = 0
  for (let i = 1; i < probabilities.length; i++)
    if ((probabilities[i] ?? 0) > (probabilities[best] ?? 0)) best = i
  return classes[best] ?? ""
}

export const confidenceOf = ({ probabilities }: Judged): number => Math.max(...probabilities)

function brierOf({ classes, probabilities, gold }: Judged): number {
  return probabilities.reduce(
    (sum, probability, i) => sum + (probability - (classes[i] === gold ? 1 : 0)) ** 2,
    0,
  )
}

function majorityOf(judged: readonly Judged[]): number {
  const counts = Map.groupBy(judged, ({ gold }) => gold)
  return judged.length === 0
    ? 0
    : Math.max(...[...counts.values()].map((group) => group.length)) / judged.length
}

function confusionOf(judged: readonly Judged[]): Map<string, Map<string, number>> {
  const confusion = new Map<string, Map<string, number>>()
  for (const one of judged) {
    const row = confusion.get(one.gold) ?? new Map<string, number>()
    row.set(answerOf(one), (row.get(answerOf(one)) ?? 0) + 1)
    confusion.set(one.gold, row)
  }
  return confusion
}

function macroF1Of(confusion: ReadonlyMap<string, ReadonlyMap<string, number>>): number {
  const classes = new Set([...confusion.keys(), ...[...confusion.values()].flatMap((row) => [...row.keys()])])
  if (classes.size === 0) return 0
  const total = [...classes].reduce((sum, name) => {
    const hits = confusion.get(name)?.get(name) ?? 0
    const gold = [...(confusion.get(name)?.values() ?? [])].reduce((a, b) => a + b, 0)
    const answered = [...confusion.values()].reduce((a, row) => a + (row.get(name) ?? 0), 0)
    return sum + (gold + answered === 0 ? 0 : (2 * hits) / (gold + answered))
  }, 0)
  return total / classes.size
}

function reliabilityOf(judged: readonly Judged[]): ReliabilityBin[] {
  const groups = Map.groupBy(judged, (one) =>
    Math.min(binCount - 1, Math.floor(confidenceOf(one) * binCount)),
  )
  return Array.from({ length: binCount }, (_, bin) => {
    const group = groups.get(bin) ?? []
    const size = Math.max(1, group.length)
    return {
      from: bin / binCount,
      to: (bin + 1) / binCount,
      count: group.length,
      meanConfidence: group.reduce((sum, one) => sum + confidenceOf(one), 0) / size,
      accuracy: group.filter((one) => answerOf(one) === one.gold).length / size,
    }
  })
}

/** A share as every text of the product writes it: `95%`, `95.5%`. */
export const percentText = (share: number): string => `${Number((share * 100).toFixed(1))}%`

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
