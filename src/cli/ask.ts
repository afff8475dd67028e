/** `umpire ask`: typed questions about a file or standard input, with the answers drawn as bars. */
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { parse } from "yaml"
import { createClient } from "../contract/client.ts"
import type { DecisionAnswer, DecisionQuestion, DecisionsResponse } from "../contract/decisions.ts"
import { type CliContext, type Command, UsageError, text, texts } from "./command.ts"
import { drawAnswers } from "./answer-bars.ts"

const evidenceBytesMax = 4 * 1024 * 1024

export const ask: Command = {
  usage: [
    "umpire ask letter.txt --yes-no 'Does the writer ask for a refund?'",
    "cat letter.txt | umpire ask --choice 'What is it about? = delivery | billing | password'",
    "umpire ask letter.txt --score 'How angry is the writer? = calm | annoyed | furious'",
    "umpire ask letter.txt --questions questions.yaml --json",
  ],
  options: {
    "yes-no": { type: "string", multiple: true, short: "y" },
    choice: { type: "string", multiple: true, short: "c" },
    score: { type: "string", multiple: true, short: "s" },
    questions: { type: "string", short: "q" },
    text: { type: "string", short: "t" },
    model: { type: "string", short: "m" },
    url: { type: "string" },
    key: { type: "string" },
    json: { type: "boolean" },
  },
  optionHelp: {
    "yes-no": "a yes/no question; may be repeated",
    choice: "question = option | option | ...",
    score: "question = lowest level | ... | highest level",
    questions: "a YAML or JSON file with a list of questions as in POST /v1/decisions",
    text: "the evidence itself, instead of a file",
    model: "the model to ask (UMPIRE_MODEL, else umpire-decide)",
    url: "the server (UMPIRE_URL, else http://127.0.0.1:8484)",
    key: "the API key; better given as UMPIRE_API_KEY",
    json: "print the server's answer as JSON",
  },
  run: async (context) => await run(context),
}

async function run(context: CliContext): Promise<number> {
  const questions = await readQuestions(context)
  if (questions.length === 0)
    throw new UsageError("no question: give --yes-no, --choice, --score or --questions")
  const input = await readEvidence(context)
  const key = text(context, "key") ?? context.environment["UMPIRE_API_KEY"]
  if (!key) throw new UsageError("no API key: set UMPIRE_API_KEY, or make one with umpire keys create")
  const url = text(context, "url") ?? context.environment["UMPIRE_URL"] ?? "http://127.0.0.1:8484"
  const model = text(context, "model") ?? context.environment["UMPIRE_MODEL"] ?? "umpire-decide"
  const client = createClient(url, { authorization: `Bearer ${key}` })
  const response = await reach(url, () => client.createDecision({ body: { model, input, questions } }))
  context.stdout.write(
    context.values["json"] === true ? `${JSON.stringify(response)}\n` : draw(context, questions, response),
  )
  return 0
}

async function reach(url: string, call: () => Promise<DecisionsResponse>): Promise<DecisionsResponse> {
  try {
    return await call()
  } catch (error) {
    // `fetch` says only "fetch failed" when nothing listens.
    if (error instanceof TypeError)
      throw new UsageError(`cannot reach ${url}: is the server running? umpire serve starts it`)
    throw error
  }
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
  return `${drawAnswers(pairs, { columns, colour })}\n${response.usage.input_tokens} tokens, ${response.model}\n`
}

async function readEvidence(context: CliContext): Promise<string> {
  const given = text(context, "text")
  if (given !== undefined) return given
  const [file] = context.positionals
  if (file !== undefined && file !== "-")
    return await readFile(resolve(context.workingDirectory, file), "utf8").catch(() => {
      throw new UsageError(`cannot read ${file}`)
    })
  if (context.stdin.isTTY) throw new UsageError("no evidence: name a file, pipe a text in, or give --text")
  let collected = ""
  for await (const chunk of context.stdin) {
    collected += String(chunk)
    if (collected.length > evidenceBytesMax) throw new UsageError("the evidence is larger than 4 MiB")
  }
  return collected
}

async function readQuestions(context: CliContext): Promise<DecisionQuestion[]> {
  const file = text(context, "questions")
  const listed =
    file === undefined ? [] : await readQuestionFile(resolve(context.workingDirectory, file), file)
  return [
    ...listed,
    ...texts(context, "yes-no").map((instructions): DecisionQuestion => ({
      type: "predicate",
      instructions,
    })),
    ...texts(context, "choice").map((flag): DecisionQuestion => {
      const { instructions, parts } = splitFlag(flag, "--choice")
      return { type: "choice", instructions, choices: parts.map((value) => ({ value })) }
    }),
    ...texts(context, "score").map((flag): DecisionQuestion => {
      const { instructions, parts } = splitFlag(flag, "--score")
      return { type: "score", instructions, levels: parts.map((label) => ({ label })) }
    }),
  ]
}

/** "What is it about? = a | b": the last equals sign divides, so that a question may hold one. */
function splitFlag(flag: string, option: string): { instructions: string; parts: string[] } {
  const at = flag.lastIndexOf("=")
  const parts = flag
    .slice(at + 1)
    .split("|")
    .map((part) => part.trim())
    .filter((part) => part !== "")
  if (at < 1 || parts.length === 0)
    throw new UsageError(`cannot read ${option}: write 'question = first | second'`)
  return { instructions: flag.slice(0, at).trim(), parts }
}

/** The server checks the questions; here it only has to be a list. */
async function readQuestionFile(path: string, shown: string): Promise<DecisionQuestion[]> {
  let found: unknown
  try {
    found = parse(await readFile(path, "utf8"))
  } catch {
    throw new UsageError(`cannot read the questions in ${shown}: a YAML or JSON file is needed`)
  }
  const list = Array.isArray(found) ? found : (found as { questions?: unknown } | null)?.questions
  if (!Array.isArray(list))
    throw new UsageError(
      `cannot read the questions in ${shown}: a list, or a mapping with questions, is needed`,
    )
  return list as DecisionQuestion[]
}
