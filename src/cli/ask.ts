/** `umpire ask`: typed questions about a file or standard input, with the answers drawn as bars. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { plural } from "../base/plural.ts"
import type { DecisionAnswer, DecisionQuestion, DecisionsResponse } from "../contract/decisions.ts"
import { percentText } from "../scoring/evaluation.ts"
import { connectServer } from "./api-client.ts"
import { type CliContext, type Command, UsageError, text, valueOption } from "./command.ts"
import { unreadable } from "./given-files.ts"
import { questionOptions, readQuestions } from "./questions.ts"
import { serverOptions } from "./server-options.ts"
import { printable } from "./table.ts"

const evidenceBytesMax = 4 * 1024 * 1024

export const ask: Command = {
  usage: [
    "umpire ask letter.txt --yes-no 'Does the writer ask for a refund?'",
    "cat letter.txt | umpire ask --choice 'What is it about? = delivery | billing | password'",
    "umpire ask letter.txt --score 'How angry is the writer? = calm | annoyed | furious'",
    "umpire ask letter.txt --questions questions.yaml --json",
  ],
  options: {
    ...questionOptions,
    text: valueOption("the evidence itself, instead of a file", "t"),
    model: valueOption("the model to ask (UMPIRE_MODEL, else umpire-decide)", "m"),
    ...serverOptions,
    json: { ...serverOptions.json, help: "print the server's answer as JSON" },
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const questions = await readQuestions(context)
  if (questions.length === 0)
    throw new UsageError("no question: give --yes-no, --choice, --score or --questions")
  const input = await readEvidence(context)
  const { client } = connectServer(context)
  const model = text(context, "model") ?? context.environment["UMPIRE_MODEL"] ?? "umpire-decide"
  const response = await client.createDecision({ body: { model, input, questions } })
  context.stdout.write(
    context.values["json"] === true ? `${JSON.stringify(response)}\n` : draw(context, questions, response),
  )
  return 0
}

function draw(
  context: CliContext,
  questions: readonly DecisionQuestion[],
  response: DecisionsResponse,
): string {
  const pairs = response.answers.flatMap((answer: DecisionAnswer, index) => {
    const question = questions[index]
    return question ? [{ question, answer }] : []
  })
  const { isTTY = false, columns = 80 } = context.stdout
  const colour = isTTY && !context.environment["NO_COLOR"]
  return `${drawAnswers(pairs, { columns, colour })}\n${plural(response.usage.input_tokens, "token")}, ${response.model}\n`
}

async function readEvidence(context: CliContext): Promise<string> {
  const given = text(context, "text")
  const [file, another] = context.positionals
  if (another !== undefined)
    throw new UsageError(`one text at a time: ${file} and ${another} are given; quote a name with spaces`)
  if (given !== undefined && file !== undefined)
    throw new UsageError(`one text at a time: ${file} and --text are given`)
  if (given !== undefined) return given
  if (file !== undefined && file !== "-")
    return await readFile(resolve(context.workingDirectory, file), "utf8").catch(
      unreadable(file, "; --text gives the text itself"),
    )
  if (context.stdin.isTTY) throw new UsageError("no evidence: name a file, pipe a text in, or give --text")
  let collected = ""
  for await (const chunk of context.stdin) {
    collected += String(chunk)
    if (collected.length > evidenceBytesMax) throw new UsageError("the evidence is larger than 4 MiB")
  }
  return collected
}

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

/** One bar for each probability, the winner marked. */
function drawAnswers(answered: readonly Answered[], canvas: Canvas): string {
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
