/** The typed questions that branches are of: what a worker is asked that answers questions, not branches. */
import { type Branch, predicate, promptText } from "../branch.ts"

export interface AskedOption {
  readonly value: string
  /** Empty: none. */
  readonly description: string
}

export interface AskedQuestion {
  readonly type: "predicate" | "choice" | "score"
  readonly instructions: string
  /** Of a predicate yes and no; of a score its levels from the lowest; of a choice each option once. */
  readonly options: readonly AskedOption[]
  /** Which option each branch proposes. */
  readonly reads: readonly { readonly branch: number; readonly option: number }[]
}

type Worded = Omit<AskedQuestion, "reads">
type Unread = Worded & { readonly proposes: readonly number[] }

/** What is asked in the same words is asked once. */
export function questionsOf(branches: readonly Branch[]): AskedQuestion[] {
  const asked = new Map<string, Worded & { readonly reads: Read[] }>()
  for (let start = 0; start < branches.length;) {
    const group = branches.slice(start, start + sizeOf(branches[start]))
    const whole = together(group)
    for (const [nth, part] of (whole ? [whole] : group.map(yesOrNo)).entries()) {
      const { proposes, ...worded } = part
      const key = JSON.stringify(worded)
      const question = asked.get(key) ?? { ...worded, reads: [] }
      asked.set(key, question)
      for (const [index, option] of proposes.entries())
        question.reads.push({ branch: start + nth + index, option })
    }
    start += group.length
  }
  return [...asked.values()]
}

type Read = AskedQuestion["reads"][number]

/** The branches of one question stand together and say how many they are. */
function sizeOf(branch: Branch | undefined): number {
  if (branch?.kind === "choice") return branch.options ?? 1
  return branch?.kind === "score" ? branch.levels : 1
}

/** As one question; null where its branches are to be asked one by one. */
function together(group: readonly Branch[]): Unread | null {
  const [first] = group
  if (first?.kind === "score") {
    const levels = group.flatMap((branch) => (branch.kind === "score" ? [branch] : []))
    if (levels.length < first.levels) return null
    const options = levels
      .toSorted((a, b) => a.level - b.level)
      .map(({ label, description }) => ({ value: label, description }))
    const proposes = levels.map(({ level }) => level)
    return { type: "score", instructions: first.question, options, proposes }
  }
  if (first?.kind !== "choice" || first.options === undefined) return null
  const values = group.flatMap((branch) =>
    branch.kind === "choice" ? [{ value: branch.value, description: branch.description }] : [],
  )
  const keys = values.map((option) => JSON.stringify(option))
  const unique = [...new Set(keys)]
  const options = unique.map((key) => values[keys.indexOf(key)] ?? { value: "", description: "" })
  // Two of one name cannot be told apart by it, and a single one is no choice.
  const names = new Set(options.map(({ value }) => value.trim()))
  if (values.length < group.length || names.size < unique.length || names.has("") || unique.length < 2)
    return null
  const proposes = keys.map((key) => unique.indexOf(key))
  return { type: "choice", instructions: first.question, options, proposes }
}

function yesOrNo(branch: Branch): Unread {
  const isPredicate = branch.kind === "predicate"
  return {
    type: "predicate",
    instructions: isPredicate ? branch.question : promptText(branch).trim(),
    options: [
      { value: "yes", description: isPredicate ? branch.yesMeans : "" },
      { value: "no", description: isPredicate ? branch.noMeans : "" },
    ],
    proposes: [0],
  }
}

/** Probabilities this close to 0 or 1 have no finite margin in double precision. */
const PROBABILITY_LEAST = 1e-300

/** Of each branch, from the probabilities of each question's options: those of a choice or score sum to one, and do so again. */
export function marginsOf(
  questions: readonly AskedQuestion[],
  probabilities: readonly (readonly number[])[],
): Float64Array {
  const margins: number[] = []
  for (const [at, { reads }] of questions.entries())
    for (const { branch, option } of reads)
      margins[branch] = toMargin(probabilities[at]?.[option] ?? Number.NaN)
  return Float64Array.from(margins)
}

const toMargin = (yes: number): number =>
  Math.log(Math.max(yes, PROBABILITY_LEAST)) - Math.log(Math.max(1 - yes, PROBABILITY_LEAST))

export const describedOption = ({ value, description }: AskedOption): string =>
  description === "" ? value : value === "" ? description : `${value} - ${description}`

/** Asks whether a worker answers at all; what it answers does not matter. */
export const probe = {
  text: "The sky is blue today.",
  questions: questionsOf([predicate("Is the sky blue?")]),
} as const
