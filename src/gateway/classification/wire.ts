/**
 * The wires of both classification endpoints, both ways: a body becomes a `Classification`, small ones at once and large ones in a
 * thread, and the margins of its branches become the JSON of the answers. The rules of decisions are here, those of System One in
 * systemone.ts.
 */
import { type JsonObject, type JsonValue, isList } from "../../base/json.ts"
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import {
  type DecisionInputMessage,
  type DecisionInputText,
  LIMITS,
  combinedText,
  isBlank,
} from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { UnusableMargin, readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import {
  type Classification,
  type Question,
  type Wire,
  asList,
  asObject,
  asOneOf,
  asOptionalString,
  asString,
  memberAt,
  composeClassification,
  eachQuestion,
  fieldPath,
  invalid,
  isSetReference,
  onlyMargin,
  readBody,
  refuseCountOutside,
  refuseLongName,
  refuseOversizedEvidence,
  refuseTooManyQuestions,
  refuseUnknownFields,
  shown,
  wrong,
} from "./classification.ts"
import { conversationText, instructionsText } from "./decode-conversation.ts"
import { type SystemOneCompatibility, decodeSystemOne, encodeSystemOne } from "./systemone.ts"

interface DecodeJob {
  readonly wire: Wire
  readonly bytes: Uint8Array
  readonly compatibility: Compatibility
}

/** Departures from the contract that are switched on. */
export interface Compatibility extends SystemOneCompatibility {
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

export function decodeBody({ wire, bytes, compatibility }: DecodeJob): Classification {
  switch (wire) {
    case "decisions":
      return decodeDecisions(bytes, compatibility.decisionsGa)
    case "systemone":
      return decodeSystemOne(bytes, compatibility)
  }
}

/** Every refusal is a Fault with a stable code and the path of what is wrong. */
export function decodeDecisions(bytes: Uint8Array, isGa = false): Classification {
  const body = readBody(bytes)
  refuseUnknownFields(body, isGa ? [...bodyFields, ...cacheFields] : bodyFields, "")
  const model = decodeModel(body.get("model"))
  asOptionalString(body.get("safety_identifier"), "safety_identifier")
  const evidence = decodeInput(body.get("input"), isGa)
  const asked = isSetReference(model)
    ? decodeSetQuestions(body.get("questions"), isGa)
    : { questions: decodeQuestions(body.get("questions"), isGa), questionNames: null }
  return composeClassification({ wire: "decisions", model, evidence, ...asked })
}

const bodyFields = ["model", "input", "questions", "safety_identifier"]
/** Read and thrown away: evidence is cached by its tokens. */
const cacheFields = ["prompt_cache_key", "prompt_cache_options"]

function decodeModel(value: JsonValue | undefined): string {
  const model = asString(value, "model")
  if (isBlank(model)) throw invalid("model is blank", "name a classification model")
  refuseLongName(model, LIMITS.modelBytesMax, "model")
  return model
}

function decodeInput(value: JsonValue | undefined, isGa: boolean): string {
  if (typeof value !== "string" && !isList(value))
    throw wrong("input", value, "a string or a list of user messages")
  const text =
    isGa && isList(value)
      ? conversationText(value)
      : combinedText(typeof value === "string" ? value : value.map(decodeMessage))
  if (isBlank(text)) {
    throw new Fault(
      "input_blank",
      "Cannot classify: input holds no text; it must have a character that is not blank",
    )
  }
  refuseOversizedEvidence(text, "input")
  return text
}

/** What a message is comes before what it may hold, so that another kind of item is called unsupported. */
function decodeMessage(value: JsonValue, at: number): DecisionInputMessage {
  const path = `input[${at}]`
  const message = asObject(value, path)
  if (message.has("type")) {
    const type = asString(message.get("type"), fieldPath(path, "type"))
    if (type !== "message") throw unsupported(`${path} is of type ${shown(type)}`)
  }
  if (message.has("role")) {
    const role = asString(message.get("role"), fieldPath(path, "role"))
    if (role !== "user") throw unsupported(`${path} has the role ${shown(role)}`)
  }
  refuseUnknownFields(message, ["type", "role", "content"], path)
  if (!message.has("role")) throw invalid(`${path}.role is missing`, 'it must be "user"')
  return { role: "user", content: decodeContent(message.get("content"), fieldPath(path, "content")) }
}

function decodeContent(value: JsonValue | undefined, path: string): string | DecisionInputText[] {
  if (typeof value === "string") return value
  if (isList(value)) return value.map((part, at) => decodePart(part, `${path}[${at}]`))
  throw wrong(path, value, "a string or a list of input_text parts")
}

function decodePart(value: JsonValue, path: string): DecisionInputText {
  const part = asObject(value, path)
  const type = asString(part.get("type"), fieldPath(path, "type"))
  if (type !== "input_text") throw unsupported(`${path} is of type ${shown(type)}`)
  refuseUnknownFields(part, ["type", "text"], path)
  return { type, text: asString(part.get("text"), fieldPath(path, "text")) }
}

const unsupported = (found: string): Fault =>
  new Fault("unsupported_input", `Cannot classify: ${found}; only text of user messages is supported`)

function decodeQuestions(value: JsonValue | undefined, isGa: boolean): Question[] {
  const questions = asList(value, "questions")
  refuseTooManyQuestions(questions.length)
  return questions.map((question, at) => decodeQuestion(question, `questions[${at}]`, isGa))
}

/** A question set is asked by the names of its questions; one without questions takes those of the request. */
function decodeSetQuestions(
  value: JsonValue | undefined,
  isGa: boolean,
): Pick<Classification, "questions" | "questionNames"> {
  const entries = asList(value, "questions")
  refuseTooManyQuestions(entries.length)
  const questions: Question[] = []
  const questionNames: string[] = []
  for (const [at, entry] of entries.entries()) {
    const path = `questions[${at}]`
    const question = asObject(entry, path)
    if (question.has("instructions")) questions.push(decodeQuestion(entry, path, isGa))
    else questionNames.push(decodeQuestionName(question, path))
  }
  return { questions, questionNames }
}

function decodeQuestionName(question: JsonObject, path: string): string {
  refuseUnknownFields(question, ["name", "type"], path)
  return asString(question.get("name"), fieldPath(path, "name"))
}

function decodeQuestion(value: JsonValue, path: string, isGa: boolean): Question {
  const question = asObject(value, path)
  const type = asOneOf(question.get("type"), ["predicate", "choice", "score"], fieldPath(path, "type"))
  refuseUnknownFields(question, questionFields[type], path)
  const name = asOptionalString(question.get("name"), fieldPath(path, "name"))
  const given = question.get("instructions")
  const at = fieldPath(path, "instructions")
  const instructions = isGa ? instructionsText(given, at) : asString(given, at)
  switch (type) {
    case "predicate":
      return { type, name, path, instructions, yesMeans: "", noMeans: "" }
    case "choice": {
      const options = decodeOptions(question, fieldPath(path, "choices"))
      return { type, name, path, instructions, options }
    }
    case "score": {
      const levels = decodeLevels(question, fieldPath(path, "levels"))
      return { type, name, path, instructions, levels }
    }
  }
}

const questionFields = {
  predicate: ["type", "name", "instructions"],
  choice: ["type", "name", "instructions", "choices"],
  score: ["type", "name", "instructions", "levels"],
} as const satisfies Record<Question["type"], readonly string[]>

interface Option {
  readonly value: string | boolean
  readonly description: string
}

function decodeOptions(question: JsonObject, path: string): Option[] {
  const choices = asList(question.get("choices"), path)
  refuseCountOutside(choices.length, [LIMITS.optionsMin, LIMITS.optionsMax], path)
  const options = choices.map((choice, at) => decodeOption(choice, `${path}[${at}]`))
  refuseDuplicates(options, path)
  return options
}

function decodeOption(value: JsonValue, path: string): Option {
  const option = asObject(value, path)
  refuseUnknownFields(option, ["value", "description"], path)
  const chosen = option.get("value")
  if (typeof chosen !== "string" && typeof chosen !== "boolean") {
    throw wrong(fieldPath(path, "value"), chosen, "a string or a boolean")
  }
  return { value: chosen, description: decodeDescription(option, path) }
}

/** A set keeps `true` and `"true"` apart, as the contract does. */
function refuseDuplicates(options: readonly Option[], path: string): void {
  const seen = new Set<string | boolean>()
  for (const [at, { value }] of options.entries()) {
    if (seen.has(value)) {
      const printed = typeof value === "string" ? shown(value) : String(value)
      throw new Fault(
        "duplicate_choice",
        `Cannot classify: ${path}[${at}] repeats the value ${printed}; the values of a choice must be distinct`,
      )
    }
    seen.add(value)
  }
}

function decodeLevels(question: JsonObject, path: string): { label: string; description: string }[] {
  const levels = asList(question.get("levels"), path)
  refuseCountOutside(levels.length, [LIMITS.levelsMin, LIMITS.levelsMax], path)
  return levels.map((value, at) => {
    const levelPath = `${path}[${at}]`
    const level = asObject(value, levelPath)
    refuseUnknownFields(level, ["label", "description"], levelPath)
    return {
      label: asString(level.get("label"), fieldPath(levelPath, "label")),
      description: decodeDescription(level, levelPath),
    }
  })
}

const decodeDescription = (object: JsonObject, path: string): string =>
  asOptionalString(object.get("description"), fieldPath(path, "description")) ?? ""

/**
 * The JSON text of a 200. Margins are those of `classification.branches`, in their order; a wrong number of them, or
 * one that is not finite, is Fault `invalid_worker_response`.
 */
export function answer(classification: Classification, margins: Float64Array, inputTokens: number): string {
  const { branches } = classification
  if (margins.length !== branches.length) {
    throw unusable(`${margins.length} margins came back for ${branches.length} branches`)
  }
  try {
    return encode(classification, margins, inputTokens)
  } catch (cause) {
    if (!(cause instanceof UnusableMargin)) throw cause
    throw unusable(cause.message, cause)
  }
}

const unusable = (found: string, cause?: unknown): Fault =>
  new Fault("invalid_worker_response", `Cannot read the scores: ${found}; send the request again`, { cause })

function encode(classification: Classification, margins: Float64Array, inputTokens: number): string {
  switch (classification.wire) {
    case "decisions":
      return encodeDecisions(classification, margins, inputTokens)
    case "systemone":
      return encodeSystemOne(classification, margins, inputTokens)
  }
}

/** Put together from parts: JSON.stringify would look at every field of an object that always has the same. */
function encodeDecisions(classification: Classification, margins: Float64Array, inputTokens: number): string {
  const answers = eachQuestion(classification, margins, decisionAnswer).join(",")
  const usage =
    `{"input_tokens":${inputTokens},"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":0},` +
    `"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":${inputTokens}}`
  return `{"answers":[${answers}],"model":${JSON.stringify(classification.model)},"usage":${usage}}`
}

function decisionAnswer(question: Question, margins: Float64Array): string {
  const name = question.name === null ? "null" : JSON.stringify(question.name)
  switch (question.type) {
    case "predicate":
      return `{"type":"predicate","name":${name},"probability":${readPredicate(onlyMargin(margins))}}`
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const values = question.options.map(({ value }) => JSON.stringify(value))
      const each = values.map(
        (value, option) => `{"value":${value},"probability":${memberAt(probabilities, option)}}`,
      )
      return (
        `{"type":"choice","name":${name},"choice":${memberAt(values, winner)},"confidence":${confidence},` +
        `"probabilities":[${each.join(",")}]}`
      )
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      const each = question.levels.map(
        ({ label }, value) =>
          `{"label":${JSON.stringify(label)},"value":${value},"probability":${memberAt(probabilities, value)}}`,
      )
      return (
        `{"type":"score","name":${name},"score":${score},"confidence":${confidence},` +
        `"probabilities":[${each.join(",")}]}`
      )
    }
  }
}
