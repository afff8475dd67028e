/** The wires of both classification endpoints, both ways: a body becomes a `Classification`, and the margins of its branches become the answers. */
import type { z } from "zod"
import { elementAt } from "../../base/lists.ts"
import { JsonNumber, JsonObject, type JsonValue, printJson } from "../../base/json.ts"
import {
  type AnswerVerdict,
  type DecisionAnswer,
  DecisionsRequest,
  type DecisionsResponse,
  DecisionsSetRequest,
} from "../../contract/decisions.ts"
import { EncodedJson } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { SystemOneRequest, SystemOneSetRequest } from "../../contract/systemone.ts"
import { UnusableMargin, readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import type { Usage } from "../meter.ts"
import {
  type Classification,
  type Question,
  composeClassification,
  isSetReference,
  marginsOf,
} from "./classification.ts"
import {
  type ConversationQuestion,
  ConversationRequest,
  ConversationSetRequest,
  contentText,
  conversationText,
} from "./conversation.ts"
import { type ReadOptions, entryPath, readAs, readBody } from "./read-request.ts"

export function decodeDecisions(bytes: Uint8Array, isGa = false): Classification {
  const body = readBody(bytes)
  const isOfSet = isSetReference(body.get("model"))
  const schema = isGa
    ? isOfSet
      ? ConversationSetRequest
      : ConversationRequest
    : isOfSet
      ? DecisionsSetRequest
      : DecisionsRequest
  // The widest of these schemas.
  const request = readAs(schema, body) as z.infer<typeof ConversationSetRequest>
  const { model, input } = request
  const questions: Question[] = []
  const names: string[] = []
  for (const [at, question] of request.questions.entries())
    if ("instructions" in question) questions.push(decisionQuestion(question, `questions[${at}]`))
    else names.push(question.name)
  const evidence = typeof input === "string" ? input : conversationText(input)
  const questionNames = isOfSet ? names : null
  return composeClassification({ wire: "decisions", model, evidence, questions, questionNames })
}

function decisionQuestion(question: ConversationQuestion, path: string): Question {
  const { name = null } = question
  const { instructions: asked } = question
  const stem = { name, path, instructions: typeof asked === "string" ? asked : contentText(asked) }
  switch (question.type) {
    case "predicate":
      return { type: "predicate", ...stem, yesMeans: "", noMeans: "" }
    case "choice":
      return { type: "choice", ...stem, options: question.choices.map(described) }
    case "score":
      return { type: "score", ...stem, levels: question.levels.map(described) }
  }
}

const described = <Entry extends { readonly description?: string | null | undefined }>(entry: Entry) => ({
  ...entry,
  description: entry.description ?? "",
})

/** A request of System One as it is read: texts are rendered, and maps keep the order of their keys. */
interface ReadSystemOne {
  readonly model: string
  readonly state: string
  readonly questions: ReadonlyMap<string, ReadQuestion | {}>
}

type ReadQuestion = { readonly instructions: string } & (
  | { readonly type: "noul"; readonly criteria?: { readonly true?: string; readonly false?: string } | null }
  | { readonly type: "choice"; readonly criteria: ReadonlyMap<string, string> }
  | { readonly type: "score"; readonly criteria: readonly string[] }
)

export function decodeSystemOne(bytes: Uint8Array, options: ReadOptions): Classification {
  const body = readBody(bytes)
  const isOfSet = isSetReference(body.get("model"))
  const schema = isOfSet ? SystemOneSetRequest : SystemOneRequest
  const request = readAs(schema, body, options) as ReadSystemOne
  const { model, state: evidence } = request
  const questions: Question[] = []
  const names: string[] = []
  for (const [id, question] of request.questions)
    if ("instructions" in question) questions.push(systemOneQuestion(id, question))
    else names.push(id)
  const questionNames = isOfSet ? names : null
  return composeClassification({ wire: "systemone", model, evidence, questions, questionNames })
}

function systemOneQuestion(id: string, question: ReadQuestion): Question {
  const stem = { name: id, path: entryPath("questions", id), instructions: question.instructions }
  switch (question.type) {
    case "noul": {
      const { true: yesMeans = "", false: noMeans = "" } = question.criteria ?? {}
      return { type: "predicate", ...stem, yesMeans, noMeans }
    }
    case "choice":
      return {
        type: "choice",
        ...stem,
        options: Array.from(question.criteria, ([value, description]) => ({ value, description })),
      }
    case "score":
      // The rendered description is the label: System One levels have no other.
      return {
        type: "score",
        ...stem,
        levels: question.criteria.map((label) => ({ label, description: "" })),
      }
  }
}

/** Questions as they were asked, with what a question set made of the answers. */
export interface Judged extends Classification {
  /** One for each question. */
  readonly verdicts?: readonly AnswerVerdict[] | null
}

type InputUsage = Pick<Usage, "inputTokens" | "cachedInputTokens">

/** Also the cached ones. */
const inputTokensOf = ({ inputTokens, cachedInputTokens }: InputUsage): number =>
  inputTokens + cachedInputTokens

/**
 * The body of a 200. Margins are those of `classification.branches`, in their order; a wrong number of them, or one that is not
 * finite, is Fault `invalid_worker_response`.
 */
export function decisionsAnswer(
  classification: Judged,
  margins: Float64Array,
  usage: InputUsage,
): DecisionsResponse {
  const inputTokens = inputTokensOf(usage)
  const { verdicts } = classification
  const answers = eachQuestion(classification, margins, decisionAnswer)
  return {
    answers: verdicts
      ? answers.map((answer, at) => ({ ...answer, verdict: elementAt(verdicts, at) }))
      : answers,
    model: classification.model,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cache_write_tokens: 0, cached_tokens: usage.cachedInputTokens },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens,
    },
  }
}

function decisionAnswer(question: Question, margins: Float64Array): DecisionAnswer {
  const { name } = question
  switch (question.type) {
    case "predicate":
      return { type: "predicate", name, probability: readPredicate(onlyMargin(margins)) }
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const values = question.options.map(({ value }) => value)
      return {
        type: "choice",
        name,
        choice: elementAt(values, winner),
        confidence,
        probabilities: values.map((value, at) => ({ value, probability: elementAt(probabilities, at) })),
      }
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      return {
        type: "score",
        name,
        score,
        confidence,
        probabilities: question.levels.map(({ label }, value) => ({
          label,
          value,
          probability: elementAt(probabilities, value),
        })),
      }
    }
  }
}

/** As `decisionsAnswer`. An object would move integer-like IDs and option names to the front. */
export function systemOneAnswer(
  classification: Judged,
  margins: Float64Array,
  usage: InputUsage,
): EncodedJson {
  const { questions, verdicts } = classification
  const named = eachQuestion(classification, margins, namedAnswer)
  const answers = named.map((fields, at): [string, JsonValue] => [
    // A System One question always has its ID for a name.
    elementAt(questions, at).name ?? "",
    ordered(verdicts ? { ...fields, verdict: verdictJson(elementAt(verdicts, at)) } : fields),
  ])
  const response = ordered({
    answers: new JsonObject(answers),
    model: classification.model,
    usage: ordered({ input_tokens: numeral(inputTokensOf(usage)), output_tokens: numeral(0) }),
  })
  return new EncodedJson(printJson(response))
}

function namedAnswer(question: Question, margins: Float64Array): Readonly<Record<string, JsonValue>> {
  switch (question.type) {
    case "predicate":
      return { type: "noul", noul: numeral(readPredicate(onlyMargin(margins))) }
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const names = question.options.map(({ value }) => String(value))
      return {
        type: "choice",
        choice: elementAt(names, winner),
        confidence: numeral(confidence),
        probabilities: new JsonObject(names.map((name, at) => [name, numeral(elementAt(probabilities, at))])),
      }
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      return {
        type: "score",
        score: numeral(score),
        confidence: numeral(confidence),
        probabilities: new JsonObject(probabilities.map((each, level) => [String(level), numeral(each)])),
        legend: new JsonObject(question.levels.map(({ label }, level) => [String(level), label])),
      }
    }
  }
}

const verdictJson = ({ value, abstained, confidence, threshold, taught }: AnswerVerdict): JsonObject =>
  ordered({
    value: typeof value === "number" ? numeral(value) : value,
    abstained,
    confidence: numeral(confidence),
    threshold: threshold === null ? null : numeral(threshold),
    taught,
  })

const ordered = (fields: Readonly<Record<string, JsonValue>>): JsonObject =>
  new JsonObject(Object.entries(fields))
const numeral = (value: number): JsonNumber => new JsonNumber(String(value))

/** Hands each question the margins of its own branches. */
function eachQuestion<Result>(
  { questions, branches }: Classification,
  margins: Float64Array,
  read: (question: Question, margins: Float64Array) => Result,
): Result[] {
  if (margins.length !== branches.length)
    throw unusable(`${margins.length} margins came back for ${branches.length} branches`)
  const all = questions.map((_, at) => at)
  try {
    return marginsOf(questions, all, margins).map((own, at) => read(elementAt(questions, at), own))
  } catch (cause) {
    if (!(cause instanceof UnusableMargin)) throw cause
    throw unusable(cause.message, cause)
  }
}

const unusable = (found: string, cause?: unknown): Fault =>
  new Fault("invalid_worker_response", `Cannot read the scores: ${found}; send the request again`, { cause })

/** Of a predicate. */
const onlyMargin = (margins: Float64Array): number => margins[0] ?? Number.NaN
