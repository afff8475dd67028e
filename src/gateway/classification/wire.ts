/**
 * The wires of both classification endpoints, both ways: a body becomes a `Classification`, small ones at once and large ones in a
 * thread, and the margins of its branches become the answers.
 */
import type { z } from "zod"
import { elementAt } from "../../base/lists.ts"
import { JsonNumber, JsonObject, type JsonValue, printJson } from "../../base/json.ts"
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import {
  type DecisionAnswer,
  DecisionsRequest,
  type DecisionsResponse,
  DecisionsSetRequest,
} from "../../contract/decisions.ts"
import { EncodedJson } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { SystemOneRequest, SystemOneSetRequest } from "../../contract/systemone.ts"
import { UnusableMargin, readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import {
  type Classification,
  type Question,
  type Wire,
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

interface DecodeJob {
  readonly wire: Wire
  readonly bytes: Uint8Array
  readonly compatibility: Compatibility
}

/** Departures from the contract that are switched on. */
export interface Compatibility extends ReadOptions {
  /** Decisions take what OpenAI's own take: conversations, tools, JSON, and instructions as parts. */
  readonly decisionsGa: boolean
}

/** What a thread sends back: branches repeat their question's text, and are written anew from it for less. */
type Decoded = Omit<Classification, "branches">

/** Large bodies of one `owner` are decoded one after the other. */
export type Decode = (
  wire: Wire,
  bytes: Uint8Array,
  owner: string,
  signal: AbortSignal,
) => Promise<Classification>

export function createDecode(compatibility: Compatibility): Decode {
  return async (wire, bytes, owner, signal) => {
    const job = { wire, bytes, compatibility }
    if (bytes.byteLength < threadBytesMin) return decodeBody(job)
    return composeClassification(await threads.run(owner, decodeTask, job, signal))
  }
}

const decodeTask = task(import.meta.url, decodeApart)

/** In a thread. */
export function decodeApart(job: DecodeJob): Decoded {
  const { branches: _, ...decoded } = decodeBody(job)
  return decoded
}

/** Every refusal is a Fault with a stable code and the path of what is wrong. */
export function decodeBody({ wire, bytes, compatibility }: DecodeJob): Classification {
  switch (wire) {
    case "decisions":
      return decodeDecisions(bytes, compatibility.decisionsGa)
    case "systemone":
      return decodeSystemOne(bytes, compatibility)
  }
}

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

/**
 * The body of a 200. Margins are those of `classification.branches`, in their order; a wrong number of them, or one that is not
 * finite, is Fault `invalid_worker_response`.
 */
export function decisionsAnswer(
  classification: Classification,
  margins: Float64Array,
  inputTokens: number,
): DecisionsResponse {
  return {
    answers: eachQuestion(classification, margins, decisionAnswer),
    model: classification.model,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
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
  classification: Classification,
  margins: Float64Array,
  inputTokens: number,
): EncodedJson {
  const answers = eachQuestion(classification, margins, (question, own): [string, JsonValue] => [
    // A System One question always has its ID for a name.
    question.name ?? "",
    namedAnswer(question, own),
  ])
  const response = ordered({
    answers: new JsonObject(answers),
    model: classification.model,
    usage: ordered({ input_tokens: numeral(inputTokens), output_tokens: numeral(0) }),
  })
  return new EncodedJson(printJson(response))
}

function namedAnswer(question: Question, margins: Float64Array): JsonObject {
  switch (question.type) {
    case "predicate":
      return ordered({ type: "noul", noul: numeral(readPredicate(onlyMargin(margins))) })
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const names = question.options.map(({ value }) => String(value))
      return ordered({
        type: "choice",
        choice: elementAt(names, winner),
        confidence: numeral(confidence),
        probabilities: new JsonObject(names.map((name, at) => [name, numeral(elementAt(probabilities, at))])),
      })
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      return ordered({
        type: "score",
        score: numeral(score),
        confidence: numeral(confidence),
        probabilities: new JsonObject(probabilities.map((each, level) => [String(level), numeral(each)])),
        legend: new JsonObject(question.levels.map(({ label }, level) => [String(level), label])),
      })
    }
  }
}

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
