/** Draws typed answers for a terminal: one bar per probability, the winner marked. */
import type { DecisionAnswer, DecisionQuestion } from "../contract/decisions.ts"
import { percentText } from "../scoring/evaluation.ts"
import { printable } from "./table.ts"

interface Canvas {
  readonly columns: number
  readonly colour: boolean
}

interface Answered {
  readonly question: DecisionQuestion
  readonly answer: DecisionAnswer
}

interface Bar {
  readonly label: string
  readonly probability: number
  readonly strong: boolean
}

const labelWidthMax = 24
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
const style = {
  bold: ["\u001b[1m", "\u001b[22m"],
  dim: ["\u001b[2m", "\u001b[22m"],
  green: ["\u001b[32m", "\u001b[39m"],
} as const

export function drawAnswers(answered: readonly Answered[], canvas: Canvas): string {
  return answered.map((one) => drawAnswer(one, canvas)).join("\n")
}

function drawAnswer({ question, answer }: Answered, canvas: Canvas): string {
  const title = paint(printable(answer.name ?? question.instructions), "bold", canvas)
  const { verdict, bars } = reading(answer)
  return `${[`${title}  ${paint(verdict, "green", canvas)}`, ...bars.map((bar) => drawBar(bar, bars, canvas))].join("\n")}\n`
}

function reading(answer: DecisionAnswer): { verdict: string; bars: Bar[] } {
  switch (answer.type) {
    case "predicate": {
      const yes = answer.probability >= 0.5
      return {
        verdict: yes ? "yes" : "no",
        bars: [
          { label: "yes", probability: answer.probability, strong: yes },
          { label: "no", probability: 1 - answer.probability, strong: !yes },
        ],
      }
    }
    case "choice":
      return {
        verdict: `${printable(String(answer.choice))} (confidence ${answer.confidence.toFixed(2)})`,
        bars: answer.probabilities.map(({ value, probability }) => ({
          label: printable(String(value)),
          probability,
          strong: value === answer.choice,
        })),
      }
    case "score": {
      const highest = Math.max(...answer.probabilities.map(({ probability }) => probability))
      return {
        verdict: `${answer.score.toFixed(2)} of ${answer.probabilities.length - 1} (confidence ${answer.confidence.toFixed(2)})`,
        bars: answer.probabilities.map(({ label, value, probability }) => ({
          label: `${value} ${printable(label)}`,
          probability,
          strong: probability === highest,
        })),
      }
    }
    case "refusal":
      return { verdict: "refused", bars: [] }
  }
}

function drawBar(bar: Bar, all: readonly Bar[], canvas: Canvas): string {
  const labelWidth = Math.min(labelWidthMax, Math.max(...all.map(({ label }) => label.length)))
  const width = Math.max(10, Math.min(50, canvas.columns - labelWidth - 14))
  const filled = Math.round(bar.probability * width * 8)
  const drawn = "█".repeat(Math.floor(filled / 8)) + (eighths[filled % 8] ?? "")
  const label =
    bar.label.length > labelWidth ? `${bar.label.slice(0, labelWidth - 1)}…` : bar.label.padEnd(labelWidth)
  const percent = percentText(bar.probability).padStart(6)
  const line = `  ${label}  ${percent}  ${drawn}`
  return bar.strong ? line : paint(line, "dim", canvas)
}

function paint(value: string, name: keyof typeof style, { colour }: Canvas): string {
  const [on, off] = style[name]
  return colour ? `${on}${value}${off}` : value
}
