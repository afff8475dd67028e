/** What heads may read, and how strongly: the candidates that are fitted to a question's labels. */
import { type Part, type Problem, parts } from "./problem.ts"

/** Ridge penalties of what is read; without one it is not. */
type Strength = Readonly<Partial<Record<Part, number>>>

/** One thing to fit: what a head reads, and how strongly it is held at the model's answer. */
export interface Candidate {
  readonly reads: "nothing" | "confidence" | "answer" | "vector" | "words" | "vector and words"
  readonly strength: Strength
  /** What a teacher's label counts beside a person's; absent: it is not learnt from. */
  readonly teacherWeight?: number
}

/** From what hardly moves to what parts all labelled rows: where words alone know the answer, weak penalties are right. */
const vectorStrengths: readonly Strength[] = [0.6, 0.06, 0.02, 0.002].map((vector) => ({ vector }))
/** Where no text has fields. Twice as many strengths make answers no better, for the mean of all is what counts. */
const wordStrengths: readonly Strength[] = [0.06, 0.006, 0.0006].map((words) => ({ words }))
const bothStrengths: readonly Strength[] = [
  { vector: 0.6, words: 0.6 },
  { vector: 0.06, words: 0.06 },
  { vector: 0.06, words: 0.006 },
  { vector: 0.02, words: 0.006 },
]
/** Where texts have them: a rule of an organization is often about these alone. */
const fieldStrengths: readonly Strength[] = [
  { fields: 0.6 },
  { fields: 0.2 },
  { words: 0.2, fields: 0.06 },
  { words: 0.06, fields: 0.02 },
  { words: 0.02, fields: 0.006 },
  { words: 0.006, fields: 0.002 },
  { words: 0.0006 },
]
const allStrengths: readonly Strength[] = [
  { vector: 0.6, words: 0.6, fields: 0.2 },
  { vector: 0.2, words: 0.2, fields: 0.06 },
  { vector: 0.06, words: 0.2, fields: 0.02 },
  { vector: 0.02, words: 0.06, fields: 0.02 },
  { vector: 0.02, words: 0.02, fields: 0.006 },
  { vector: 0.06, words: 0.006, fields: 0.002 },
]
/** What a teacher's label may count beside a person's: cross-validation against people's labels weighs these, and none at all. */
const teacherWeights = [1, 0.3] as const
/** With more rows the strength matters less, and each fit with fields takes longer. */
const MANY_ROWS = 1_000

/** From the model's own answer up. Within what is read the strongest comes first: each fit starts from the one before. */
export function candidatesOf({
  read,
  labels,
  peopleCount,
}: Pick<Problem, "read" | "labels" | "peopleCount">): Candidate[] {
  const hasFields = read.fields.size > 0
  const canRead = ({ strength }: Candidate): boolean =>
    parts.every((part) => strength[part] === undefined || read[part].size > 0)
  const isFew = hasFields && labels.length > MANY_ROWS
  const of = (reads: Candidate["reads"], strengths: readonly Strength[]): Candidate[] =>
    strengths.filter((_, at) => !isFew || at % 2 === 1).map((strength) => ({ reads, strength }))
  const heads = [
    { reads: "answer", strength: {} } as const,
    ...of("vector", vectorStrengths),
    ...of("words", hasFields ? fieldStrengths : wordStrengths),
    ...of("vector and words", hasFields ? allStrengths : bothStrengths),
  ].filter(canRead)
  // How sure the model may be is for people to say: a teacher is wrong now and then.
  const safe = [{ reads: "nothing", strength: {} } as const, { reads: "confidence", strength: {} } as const]
  const weighed = peopleCount === labels.length ? [] : teacherWeights
  return [
    ...safe,
    ...heads,
    ...weighed.flatMap((teacherWeight) => heads.map((one) => ({ ...one, teacherWeight }))),
  ]
}

export const readParts = ({ strength }: Candidate): Part[] =>
  parts.filter((part) => strength[part] !== undefined)
