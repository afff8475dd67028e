/** `umpire eval --teach`: the labelled rows become examples of a question set, which is taught with them. */
import type { Client } from "../contract/client.ts"
import { ClientError } from "../contract/client.ts"
import type { DecisionQuestion } from "../contract/decisions.ts"
import type { ExampleRow } from "../contract/question-sets/examples.ts"
import { SetName, questionSetLimits } from "../contract/question-sets/content.ts"
import type { QuestionSet } from "../contract/question-sets/sets.ts"
import { connectApi } from "./api-client.ts"
import { type CliContext, UsageError } from "./command.ts"
import type { EvalRow } from "./eval-rows.ts"
import { teach } from "./sets.ts"

interface TeachRequest {
  readonly name: string
  /** For a set that is made. */
  readonly model: string
  readonly rows: readonly EvalRow[]
}

/** A set of this name is made unless there is one; then it must ask the rows' questions. */
export async function teachRows(context: CliContext, request: TeachRequest): Promise<number> {
  const { name, rows } = request
  const checked = SetName.safeParse(name)
  if (!checked.success) throw new UsageError(`--teach takes a name of ${checked.error.issues[0]?.message}`)
  const { client, organizationId: org_id } = await connectApi(context)
  const names = await questionNames(client, org_id, request)
  const examples = examplesOf(rows, names)
  const { examplesPerRequestMax } = questionSetLimits
  for (let at = 0; at < examples.length; at += examplesPerRequestMax)
    await client.addQuestionSetExamples({
      params: { org_id, set_id: name },
      body: { rows: examples.slice(at, at + examplesPerRequestMax) },
    })
  return await teach(context, name)
}

/** The name of each of the rows' questions in the set, by their text. */
async function questionNames(client: Client, org_id: string, { name, model, rows }: TeachRequest) {
  const set = await client.getQuestionSet({ params: { org_id, set_id: name } }).catch(nullIfMissing)
  const asked = new Map(rows.map(({ question }) => [question.instructions, question]))
  if (set) return namesInSet(set, [...asked.keys()])
  const questions = [...asked.values()].map((question, at) => named(question, `q${at + 1}`))
  await client.createQuestionSet({ params: { org_id }, body: { name, model, questions } })
  return new Map(questions.map((question) => [question.instructions, question.name]))
}

const named = <Question extends DecisionQuestion>(question: Question, name: string) => ({ ...question, name })

function namesInSet(set: QuestionSet, asked: readonly string[]): Map<string, string> {
  const names = new Map(set.questions.map(({ instructions, name }) => [instructions, name]))
  const unknown = asked.find((instructions) => !names.has(instructions))
  if (unknown !== undefined)
    throw new UsageError(
      `the question set ${set.name} does not ask "${unknown}": name another set by --teach, or add the question`,
    )
  return names
}

function nullIfMissing(error: unknown): null {
  if (error instanceof ClientError && error.status === 404) return null
  throw error
}

/** One example for each text, with the labels of all questions about it. */
function examplesOf(rows: readonly EvalRow[], names: ReadonlyMap<string, string>): ExampleRow[] {
  const labels = new Map<string, Record<string, string>>()
  for (const { text, question, gold } of rows) {
    const name = names.get(question.instructions)
    if (name !== undefined) labels.set(text, { ...labels.get(text), [name]: gold })
  }
  return [...labels].map(([input, found]) => ({ input, labels: found }))
}
