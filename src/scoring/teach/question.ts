/** What teaching is given: a question, and rows of evidence that a person has labelled, or another model in their place. */
export type QuestionKind = "predicate" | "choice" | "score"

export interface TaughtQuestion {
  readonly kind: QuestionKind
  /** In the order of the margins: values of a choice, labels of a score's levels; a predicate has "yes" and "no". */
  readonly options: readonly string[]
  /** The vector of each option's own text, as those of rows; null for a predicate or an engine without vectors. */
  readonly optionVectors: readonly Float32Array[] | null
  /** The engine's margins for empty evidence; null when they were not asked for. */
  readonly emptyMargins: readonly number[] | null
}

export type Split = "train" | "held_out"

export interface TaughtRow {
  /** Of the evidence. */
  readonly hash: string
  readonly split: Split
  /** As the engine gave them: one for a predicate, else one for each option. */
  readonly margins: ArrayLike<number>
  /** Those of the stages after the first, where the model is a cascade. */
  readonly later?: readonly ArrayLike<number>[]
  /** The evidence: its words, characters and fields are learnt from too. */
  readonly text: string
  /** Of the evidence, as `taughtVector` gives it; null in all rows where the engine has none. */
  readonly vector: Float32Array | null
  /** Index in `options`; 0 is the yes of a predicate, 1 its no. */
  readonly label: number
  /** The label is the answer of another model: it is learnt from as far as people's labels bear it out, and judges nothing. */
  readonly isTeacher?: boolean
}

/**
 * The part of an engine's vector that a question is taught on. Choices have the whole; of others only the last third, the
 * middle layer's, is free of cost. Heads on it alone are right as often (100 labels, model of the first recipe: 0.906 and 0.902
 * on prompt injections, 0.955 and 0.955 on SMS spam).
 */
export const taughtVector = (kind: QuestionKind, vector: Float32Array): Float32Array =>
  kind === "choice" ? vector : vector.subarray((2 * vector.length) / 3)

/** Rows that cannot be taught from, said in a sentence for the person who gave them. */
export class TeachRefusal extends Error {
  override readonly name = "TeachRefusal"
}

/** One of three rows is held out. The hash decides, so that more rows never move a row to the other side. */
export const splitOf = (hash: string): Split =>
  Number.parseInt(hash.slice(0, 8), 16) % 3 === 0 ? "held_out" : "train"

/** Throws TeachRefusal. */
export function checkRows(question: TaughtQuestion, rows: readonly TaughtRow[]): void {
  const { kind, options, optionVectors, emptyMargins } = question
  const marginCount = kind === "predicate" ? 1 : options.length
  const train = rows.filter(({ split, isTeacher }) => split === "train" && !isTeacher)
  const vectorSize = train[0]?.vector?.length ?? 0
  if (train.length < 2)
    throw new TeachRefusal(`Cannot teach from ${train.length} training rows: at least 2 are needed`)
  const stageCount = train[0]?.later?.length ?? 0
  for (const [index, { label, margins, later = [], vector, isTeacher }] of rows.entries()) {
    if (options[label] === undefined)
      throw new TeachRefusal(`Cannot teach from row ${index + 1}: its label is not one of the options`)
    if (later.length !== stageCount && !isTeacher)
      throw new TeachRefusal(`Cannot teach from row ${index + 1}: a stage did not answer it`)
    if (
      [margins, ...later].some((own) => own.length !== marginCount || !Array.from(own).every(Number.isFinite))
    )
      throw new TeachRefusal(`Cannot teach from row ${index + 1}: it needs ${marginCount} finite margins`)
    if ((vector?.length ?? 0) !== vectorSize)
      throw new TeachRefusal(`Cannot teach from row ${index + 1}: its vector is not of the others' length`)
  }
  if (optionVectors?.some(({ length }) => length !== vectorSize) === true)
    throw new TeachRefusal("Cannot teach: the vectors of the options are not of the rows' length")
  if (emptyMargins && emptyMargins.length !== marginCount)
    throw new TeachRefusal(`Cannot teach: empty evidence needs ${marginCount} margins`)
}
