/**
 * The same question in another form gets the same answer, by construction: a choice between yes and no is the predicate, levels in
 * reverse give the same probabilities in reverse, and options with one meaning share its probability.
 */
import type { Branch } from "../../engine/branch.ts"
import { softplus } from "../../scoring/answers.ts"

type ChoiceBranch = Extract<Branch, { kind: "choice" }>
type ScoreBranch = Extract<Branch, { kind: "score" }>

const AFFIRMATIVE = new Set(["yes", "true"])
const NEGATIVE = new Set(["no", "false"])

/** Branches of one choice, so that what means the same is asked the same. */
export function coherentChoice(branches: readonly ChoiceBranch[]): Branch[] {
  const plain = branches.map((branch) => ({ ...branch, description: furtherDescription(branch) }))
  const byMeaning = Map.groupBy(plain, meaningOf)
  const isYesNo = byMeaning.size === 2 && byMeaning.has("yes") && byMeaning.has("no")
  return plain.map((branch): Branch => {
    const meaning = meaningOf(branch)
    const same = byMeaning.get(meaning) ?? [branch]
    const sharers = same.length > 1 ? { sharers: same.length } : {}
    if (!isYesNo) return { ...firstByText(same), ...sharers }
    const negated = meaning === "no" ? ({ negated: true } as const) : {}
    return { kind: "predicate", question: branch.question, yesMeans: "", noMeans: "", ...negated, ...sharers }
  })
}

/** Branches of one score: a scale and its reverse count their levels in the same direction, from less to more where that shows. */
export function coherentScore(branches: readonly ScoreBranch[]): Branch[] {
  if (!isDescending(branches)) return [...branches]
  return branches.map((branch) => ({ ...branch, level: branch.levels - 1 - branch.level }))
}

/** The margins of branches as they were asked for, of those that a model gave. */
export function coherentMargins(branches: readonly Branch[], margins: Float64Array): Float64Array {
  return margins.map((margin, index) => {
    const branch = branches[index]
    if (branch === undefined || branch.kind === "score") return margin
    const own = branch.kind === "predicate" && branch.negated ? -margin : margin
    return branch.sharers === undefined ? own : sharedMargin(own, branch.sharers)
  })
}

/** The margin of a probability divided among so many. */
function sharedMargin(margin: number, sharers: number): number {
  // What is not a number stays so: no probability is read from it.
  if (!Number.isFinite(margin)) return margin
  const log = -softplus(-margin) - Math.log(sharers)
  return log - Math.log1p(-Math.exp(log))
}

const comparable = (text: string): string => text.normalize("NFKC").toLowerCase().trim().replace(/\s+/gu, " ")

/** Empty where it only repeats the value. */
function furtherDescription({ value, description }: ChoiceBranch): string {
  const [one, other] = [comparable(value), comparable(description)]
  const repeats = one === other || [AFFIRMATIVE, NEGATIVE].some((words) => words.has(one) && words.has(other))
  return repeats ? "" : description
}

function meaningOf({ value, description }: ChoiceBranch): string {
  const text = comparable(value)
  if (description !== "") return JSON.stringify([text, comparable(description)])
  if (AFFIRMATIVE.has(text)) return "yes"
  return NEGATIVE.has(text) ? "no" : JSON.stringify([text])
}

/** The same one whatever the order of the options. */
const firstByText = (branches: readonly [ChoiceBranch, ...ChoiceBranch[]] | ChoiceBranch[]): ChoiceBranch =>
  // A meaning has at least the option that it was read from.
  branches.toSorted((a, b) => compare(textOf(a), textOf(b)))[0] as ChoiceBranch

const textOf = ({ value, description }: ChoiceBranch): string => `${value}\n${description}`
const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Words by which the lower end of a scale is told from the upper one. */
const LESS =
  /\b(?:no|not|none|never|nothing|low|lower|lowest|less|least|below|under|fewer|little|few|small|tiny|minimal|minor|weak|bad|poor|worst|terrible|awful|unlikely|rarely|seldom|disagree|dissatisfied|unhappy|negative|false|calm|mild|slight|slightly|trivial|negligible|harmless|cold|zero)\b/u

/** Decided by both ends alike, so that of a scale and its reverse exactly one is turned, unless they are the same. */
function isDescending(levels: readonly ScoreBranch[]): boolean {
  const texts = levels.map(({ label, description }) => comparable(`${label} ${description}`))
  const numbers = levels.map(({ label }) => (label.trim() === "" ? Number.NaN : Number(label)))
  const [lowest = 0, highest = 0] = [numbers[0], numbers.at(-1)]
  if (numbers.every(Number.isFinite) && lowest !== highest) return lowest > highest
  const [first = "", last = ""] = [texts[0], texts.at(-1)]
  if (LESS.test(first) !== LESS.test(last)) return LESS.test(last)
  return compare(JSON.stringify(texts), JSON.stringify(texts.toReversed())) > 0
}
