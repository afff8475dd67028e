/** `umpire ask`: typed questions about a file or standard input, with the answers drawn as bars. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import type { DecisionAnswer, DecisionQuestion, DecisionsResponse } from "../contract/decisions.ts"
import { connectServer } from "./api-client.ts"
import { type CliContext, type Command, UsageError, text, valueOption } from "./command.ts"
import { drawAnswers } from "./answer-bars.ts"
import { unreadable } from "./given-files.ts"
import { questionOptions, readQuestions } from "./questions.ts"
import { serverOptions } from "./server-options.ts"
import { plural } from "../base/plural.ts"

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
