/** The wire of POST /v1/systemone, both ways; every refusal is a Fault with a stable code and the path of what is wrong. */
import { LIMITS, isBlank } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { JsonObject, type JsonValue, depthOf, isList, printJson } from "../../base/json.ts"
import {
  type Classification,
  type Question,
  asList,
  asObject,
  asOneOf,
  asString,
  memberAt,
  composeClassification,
  eachQuestion,
  entryPath,
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
  wrong,
} from "./classification.ts"
import { readChoice, readPredicate, readScore } from "../../scoring/answers.ts"

export interface SystemOneCompatibility {
  /** Take null instructions and criteria as empty ones, for clients that send them; a null state stays refused. */
  readonly nullDescriptions: boolean
}

export function decodeSystemOne(bytes: Uint8Array, compatibility: SystemOneCompatibility): Classification {
  const body = readBody(bytes)
  refuseUnknownFields(body, ["model", "state", "questions"], "")
  const model = decodeModel(body.get("model"))
  const evidence = decodeState(body.get("state"))
  const asked = isSetReference(model)
    ? decodeSetQuestions(body.get("questions"), compatibility)
    : { questions: decodeQuestions(body.get("questions"), compatibility), questionNames: null }
  return composeClassification({ wire: "systemone", model, evidence, ...asked })
}

function decodeModel(value: JsonValue | undefined): string {
  const model = asString(value, "model")
  if (model === "") throw invalid("model is empty", "name a classification model")
  refuseLongName(model, LIMITS.modelBytesMax, "model")
  return model
}

function decodeState(value: JsonValue | undefined): string {
  const state = renderText(value, "state")
  if (state === "")
    throw new Fault("input_blank", "Cannot classify: state is empty; it must render to some text")
  refuseOversizedEvidence(state, "state")
  return state
}

function decodeQuestions(value: JsonValue | undefined, compatibility: SystemOneCompatibility): Question[] {
  const questions = asObject(value, "questions")
  refuseTooManyQuestions(questions.size)
  refuseCountOutside(questions.size, [1, LIMITS.questionsMax], "questions")
  return Array.from(questions, ([id, question]) => {
    const path = idPath(id)
    return decodeQuestion(asObject(question, path), { id, path, compatibility })
  })
}

/** The path of a question; its ID is checked on the way. */
function idPath(id: string): string {
  const path = entryPath("questions", id)
  if (isBlank(id)) throw invalid("questions has a blank ID", "every question needs a nonblank one")
  refuseLongName(id, LIMITS.questionIdBytesMax, `the ID of ${path}`)
  return path
}

/** A question set is asked by the IDs of its questions, each with {}; one without questions takes those of the request. */
function decodeSetQuestions(
  value: JsonValue | undefined,
  compatibility: SystemOneCompatibility,
): Pick<Classification, "questions" | "questionNames"> {
  const entries = asObject(value, "questions")
  refuseTooManyQuestions(entries.size)
  const questions: Question[] = []
  const questionNames: string[] = []
  for (const [id, entry] of entries) {
    const path = idPath(id)
    const question = asObject(entry, path)
    if (question.has("instructions")) questions.push(decodeQuestion(question, { id, path, compatibility }))
    else {
      refuseUnknownFields(question, ["type"], path)
      questionNames.push(id)
    }
  }
  return { questions, questionNames }
}

interface Place {
  readonly id: string
  readonly path: string
  readonly compatibility: SystemOneCompatibility
}

function decodeQuestion(question: JsonObject, place: Place): Question {
  const { id, path, compatibility } = place
  const type = asOneOf(question.get("type"), ["noul", "choice", "score"], fieldPath(path, "type"))
  refuseUnknownFields(question, ["type", "instructions", "criteria"], path)
  const instructions = decodeInstructions(question.get("instructions"), place)
  const stem = { name: id, path, instructions }
  const criteria = question.get("criteria")
  const criteriaPath = fieldPath(path, "criteria")
  switch (type) {
    case "noul":
      return { type: "predicate", ...stem, ...decodeMeanings(criteria, criteriaPath, compatibility) }
    case "choice":
      return { type, ...stem, options: decodeOptions(criteria, criteriaPath, compatibility) }
    case "score":
      return { type, ...stem, levels: decodeLevels(criteria, criteriaPath, compatibility) }
  }
}

function decodeInstructions(value: JsonValue | undefined, { path, compatibility }: Place): string {
  const instructionsPath = fieldPath(path, "instructions")
  const instructions = decodeDescription(value, instructionsPath, compatibility)
  if (instructions === "" && value !== null)
    throw invalid(`${instructionsPath} is empty`, "it must ask something")
  return instructions
}

function decodeMeanings(
  criteria: JsonValue | undefined,
  path: string,
  compatibility: SystemOneCompatibility,
): { yesMeans: string; noMeans: string } {
  if (criteria === undefined || criteria === null) return { yesMeans: "", noMeans: "" }
  if (!(criteria instanceof JsonObject)) throw wrong(path, criteria, "an object or null")
  refuseUnknownFields(criteria, ["true", "false"], path)
  const meaning = (key: "true" | "false"): string => {
    const value = criteria.get(key)
    return value === undefined ? "" : decodeDescription(value, fieldPath(path, key), compatibility)
  }
  return { yesMeans: meaning("true"), noMeans: meaning("false") }
}

function decodeOptions(
  value: JsonValue | undefined,
  path: string,
  compatibility: SystemOneCompatibility,
): { value: string; description: string }[] {
  const criteria = asObject(value, path)
  refuseCountOutside(criteria.size, [LIMITS.optionsMin, LIMITS.optionsMax], path)
  return Array.from(criteria, ([name, description]) => {
    if (isBlank(name)) throw invalid(`${path} has a blank option name`, "every option needs a nonblank one")
    return {
      value: name,
      description: decodeDescription(description, entryPath(path, name), compatibility),
    }
  })
}

/** The rendered description is the label: System One levels have no other. */
function decodeLevels(
  value: JsonValue | undefined,
  path: string,
  compatibility: SystemOneCompatibility,
): { label: string; description: string }[] {
  const criteria = asList(value, path)
  refuseCountOutside(criteria.length, [LIMITS.levelsMin, LIMITS.levelsMax], path)
  return criteria.map((level, at) => ({
    label: decodeDescription(level, `${path}[${at}]`, compatibility),
    description: "",
  }))
}

function decodeDescription(
  value: JsonValue | undefined,
  path: string,
  { nullDescriptions }: SystemOneCompatibility,
): string {
  return nullDescriptions && value === null ? "" : renderText(value, path)
}

/** Text as it is; an object or a list as compact JSON with its keys in the order given. */
function renderText(value: JsonValue | undefined, path: string): string {
  if (typeof value === "string") return value
  if (!(value instanceof JsonObject || isList(value))) throw wrong(path, value, "text, an object or a list")
  if (depthOf(value) > LIMITS.jsonDepthMax) {
    throw new Fault(
      "invalid_json",
      `Cannot read the request: ${path} is nested more than ${LIMITS.jsonDepthMax} levels deep; make it flatter`,
    )
  }
  return printJson(value)
}

/** Written key by key: an object would move integer-like IDs and option names to the front. */
export function encodeSystemOne(
  classification: Classification,
  margins: Float64Array,
  inputTokens: number,
): string {
  const answers = eachQuestion(classification, margins, (question, own): [string, string] => [
    // A System One question always has its ID for a name.
    question.name ?? "",
    systemOneAnswer(question, own),
  ])
  return writeObject([
    ["answers", writeObject(answers)],
    ["model", JSON.stringify(classification.model)],
    ["usage", JSON.stringify({ input_tokens: inputTokens, output_tokens: 0 })],
  ])
}

function systemOneAnswer(question: Question, margins: Float64Array): string {
  switch (question.type) {
    case "predicate":
      return JSON.stringify({ type: "noul", noul: readPredicate(onlyMargin(margins)) })
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const names = question.options.map(({ value }) => String(value))
      return writeObject([
        ["type", '"choice"'],
        ["choice", JSON.stringify(memberAt(names, winner))],
        ["confidence", JSON.stringify(confidence)],
        [
          "probabilities",
          writeObject(names.map((name, option) => [name, JSON.stringify(memberAt(probabilities, option))])),
        ],
      ])
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      return writeObject([
        ["type", '"score"'],
        ["score", JSON.stringify(score)],
        ["confidence", JSON.stringify(confidence)],
        [
          "probabilities",
          writeObject(probabilities.map((each, level) => [String(level), JSON.stringify(each)])),
        ],
        [
          "legend",
          writeObject(question.levels.map(({ label }, level) => [String(level), JSON.stringify(label)])),
        ],
      ])
    }
  }
}

/** Keys with values that are JSON already. */
const writeObject = (entries: readonly (readonly [string, string])[]): string =>
  `{${entries.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`
