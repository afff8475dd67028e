/** How long teaching takes: three questions about support tickets (bench/tickets.ts), whose margins and vectors are drawn around those of the label. */
import { drawTable } from "../src/cli/table.ts"
import type { QuestionKind, TaughtQuestion, TaughtRow } from "../src/scoring/teach/question.ts"
import { seededRandom } from "../src/scoring/teach/random.ts"
import { rowHash } from "../src/scoring/teach/row-hash.ts"
import { teach } from "../src/scoring/teach/teach.ts"
import { ticketQuestions, ticketsOf } from "./tickets.ts"

/** As the default model's: of a choice the whole, of a predicate the middle layer's part. */
const vectorSizes: Readonly<Record<QuestionKind, number>> = { choice: 2304, predicate: 768, score: 768 }
/** Of a label's mark on the vector, beside noise with a deviation of about one. */
const signal = 3

export async function measureSpeed(counts: readonly number[]): Promise<void> {
  const lines: string[][] = []
  for (const count of counts) {
    const tickets = ticketsOf(count)
    const line = [String(count)]
    let whole = 0
    for (const { options, goldOf } of ticketQuestions) {
      const kind = options.length === 2 ? "predicate" : "choice"
      const labels = tickets.map((ticket) => options.indexOf(goldOf(ticket)))
      const texts = tickets.map(({ text }) => text)
      const question = questionOf(kind, options)
      const rows = rowsOf(question, texts, labels)
      const before = process.cpuUsage()
      await teach(question, rows, { modelVersion: "bench" })
      const { user, system } = process.cpuUsage(before)
      const seconds = (user + system) / 1e6
      whole += seconds
      line.push(seconds.toFixed(2))
    }
    lines.push([...line, whole.toFixed(1)])
  }
  console.log("Processor seconds of teaching, reading the texts by the model left out\n")
  console.log(drawTable(["labels", ...ticketQuestions.map(({ set }) => set), "all three"], lines))
}

const questionOf = (kind: QuestionKind, options: readonly string[]): TaughtQuestion => ({
  kind,
  options,
  optionVectors:
    kind === "predicate"
      ? null
      : options.map((_, option) => noise(vectorSizes[kind], seededRandom(option + 1))),
  emptyMargins: null,
})

function rowsOf(
  { kind, options: { length: optionCount } }: TaughtQuestion,
  texts: readonly string[],
  labels: readonly number[],
): TaughtRow[] {
  const random = seededRandom(43)
  return texts.map((text, row) => {
    const label = labels[row] ?? 0
    const vector = noise(vectorSizes[kind], random)
    for (let at = label; at < 8 * optionCount; at += optionCount) vector[at] = (vector[at] ?? 0) + signal
    const margins = noise(kind === "predicate" ? 1 : optionCount, random)
    const mark = kind === "predicate" ? 0 : label
    margins[mark] = (margins[mark] ?? 0) + (kind === "predicate" && label === 1 ? -1 : 1)
    return { hash: rowHash(text), split: "train", text, label, margins, vector }
  })
}

/** With a deviation of about one. */
const noise = (size: number, random: () => number): Float32Array =>
  Float32Array.from({ length: size }, () => 2 * (random() + random() + random() - 1.5))
