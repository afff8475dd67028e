/** Sends labelled rows through a running server, several at a time, and judges the answers. */
import { mapConcurrent } from "../base/lists.ts"
import type { CallOptions, Client } from "../contract/client.ts"
import type { DecisionAnswer, DecisionQuestion } from "../contract/decisions.ts"
import { languageHeader } from "../contract/language.ts"
import type { SystemOneAnswer, SystemOneQuestion } from "../contract/systemone.ts"
import type { Judged } from "../scoring/evaluation.ts"
import type { EvalRow } from "./eval-rows.ts"

export type EvalEndpoint = "decisions" | "systemone"

interface EvalTarget {
  readonly client: Client
  readonly model: string
  readonly endpoint: EvalEndpoint
  readonly concurrency: number
}

interface EvalRun {
  readonly judged: readonly Judged[]
  readonly inputTokens: number
  readonly elapsedMs: number
}

export async function runRows(
  target: EvalTarget,
  rows: readonly EvalRow[],
  onProgress: (done: number) => void,
): Promise<EvalRun> {
  const startedMs = performance.now()
  let inputTokens = 0
  let done = 0
  const concurrency = Math.max(1, target.concurrency)
  const judged = await mapConcurrent(rows, { concurrency }, async (row): Promise<Judged> => {
    let language: string | null = null
    const told: Told = { onHeaders: (headers) => (language = headers.get(languageHeader)) }
    const ask = target.endpoint === "decisions" ? askDecisions : askSystemOne
    const { probabilities, tokens } = await ask(target, row, told)
    inputTokens += tokens
    onProgress(++done)
    return { classes: row.classes, probabilities, gold: row.gold, language }
  })
  return { judged, inputTokens, elapsedMs: performance.now() - startedMs }
}

type Told = Pick<CallOptions, "onHeaders">

interface Answered {
  readonly probabilities: number[]
  readonly tokens: number
}

async function askDecisions({ client, model }: EvalTarget, row: EvalRow, told: Told): Promise<Answered> {
  const { text, question } = row
  const { answers, usage } = await client.createDecision({
    body: { model, input: text, questions: [question] },
    ...told,
  })
  return { probabilities: answers[0] ? fromDecision(answers[0]) : [], tokens: usage.input_tokens }
}

function fromDecision(answer: DecisionAnswer): number[] {
  switch (answer.type) {
    case "predicate":
      return [answer.probability, 1 - answer.probability]
    case "choice":
    case "score":
      return answer.probabilities.map(({ probability }) => probability)
    case "refusal":
      return []
  }
}

async function askSystemOne({ client, model }: EvalTarget, row: EvalRow, told: Told): Promise<Answered> {
  const { text, question, classes } = row
  const { answers, usage } = await client.createSystemOne({
    body: { model, state: text, questions: { q: toSystemOne(question) } },
    ...told,
  })
  const answer = answers["q"]
  return { probabilities: answer ? fromSystemOne(answer, classes) : [], tokens: usage.input_tokens }
}

function toSystemOne(question: DecisionQuestion): SystemOneQuestion {
  const { instructions } = question
  switch (question.type) {
    case "predicate":
      return { type: "noul", instructions }
    case "choice":
      return {
        type: "choice",
        instructions,
        criteria: Object.fromEntries(
          question.choices.map(({ value, description }) => [String(value), description ?? ""]),
        ),
      }
    case "score":
      return { type: "score", instructions, criteria: question.levels.map(({ label }) => label) }
  }
}

function fromSystemOne(answer: SystemOneAnswer, classes: readonly string[]): number[] {
  switch (answer.type) {
    case "noul":
      return [answer.noul, 1 - answer.noul]
    case "choice":
      return classes.map((name) => answer.probabilities[name] ?? 0)
    case "score":
      return classes.map((_, index) => answer.probabilities[String(index)] ?? 0)
  }
}
