/** What both classification wires come to (one text of evidence, typed questions, a branch per binary read), and how both read the fields of a body. */
import {
  type JsonList,
  type JsonValue,
  JsonError,
  JsonNumber,
  JsonObject,
  isList,
  readJson,
} from "../../base/json.ts"
import { checkJsonBounds } from "../../base/json-bounds.ts"
import { LIMITS, fitsUtf8, utf8Bytes } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import { type Branch, promptText } from "../../engine/branch.ts"
import { coherentChoice, coherentScore } from "./coherence.ts"

/** Which endpoint asked, and so in which shape the answers go back. */
export type Wire = "decisions" | "systemone"

interface QuestionStem {
  /** The name in decisions, where it may be null; the question ID in System One. */
  readonly name: string | null
  /** Where the question stands in the request, for sentences about it. */
  readonly path: string
  readonly instructions: string
}

interface PredicateQuestion extends QuestionStem {
  readonly type: "predicate"
  /** What yes and no mean; empty when not said. */
  readonly yesMeans: string
  readonly noMeans: string
}

interface ChoiceQuestion extends QuestionStem {
  readonly type: "choice"
  /** An empty description is none. */
  readonly options: readonly { readonly value: string | boolean; readonly description: string }[]
}

interface ScoreQuestion extends QuestionStem {
  readonly type: "score"
  /** From level zero up; an empty description is none. */
  readonly levels: readonly { readonly label: string; readonly description: string }[]
}

export type Question = PredicateQuestion | ChoiceQuestion | ScoreQuestion

export interface Classification {
  readonly wire: Wire
  /** As sent; whether the catalog knows it is the router's to say. */
  readonly model: string
  readonly evidence: string
  readonly questions: readonly Question[]
  /** Of a question set: those that are asked by name; null where the model is no set. */
  readonly questionNames: readonly string[] | null
  /** The branches of all questions, one question after another; each question has `branchCount` of them. */
  readonly branches: readonly Branch[]
}

/** The name of a question set where a request names a model: `set:NAME`, `set:NAME@7`, `set:NAME@production`. */
export interface SetReference {
  readonly name: string
  /** A version's number or a label; null: the published version, or the latest where none is. */
  readonly version: string | null
}

const setPrefix = "set:"
const setForm = /^set:([a-z0-9][a-z0-9._-]{0,63})(?:@([1-9][0-9]{0,8}|[a-z][a-z0-9._-]{0,63}))?$/

export const isSetReference = (model: string): boolean => model.startsWith(setPrefix)

/** Throws Fault `unknown_model` for what cannot be the name of a set. */
export function parseSetReference(model: string): SetReference {
  const [, name, version = null] = setForm.exec(model) ?? []
  if (name === undefined) throw unknownSet(model)
  return { name, version }
}

export const unknownSet = (model: string): Fault =>
  new Fault(
    "unknown_model",
    `Cannot classify: the organization has no question set or version ${JSON.stringify(model.slice(0, 150))}`,
    { param: "model" },
  )

/** How many binary reads a question takes. */
export function branchCount(question: Question): number {
  switch (question.type) {
    case "predicate":
      return 1
    case "choice":
      return question.options.length
    case "score":
      return question.levels.length
  }
}

/** Hands each question the margins of its own branches. */
export function eachQuestion<Result>(
  { questions }: Classification,
  margins: Float64Array,
  read: (question: Question, margins: Float64Array) => Result,
): Result[] {
  // Most requests ask one question, whose margins are all of them.
  if (questions.length === 1 && questions[0]) return [read(questions[0], margins)]
  let start = 0
  return questions.map((question) => {
    // A copy of a few numbers costs less than a view of them.
    const own = margins.slice(start, start + branchCount(question))
    start += own.length
    return read(question, own)
  })
}

/** Of a predicate. */
export const onlyMargin = (margins: Float64Array): number => margins[0] ?? Number.NaN

export function memberAt<Member>(list: readonly Member[], position: number): Member {
  // Readings have one element per option or level, so the position is always inside.
  return list[position] as Member
}

/** Expands decoded questions into branches; throws Fault `too_many_branches` or `question_too_large`. */
export function composeClassification(decoded: Omit<Classification, "branches">): Classification {
  const { wire, model, evidence, questions, questionNames } = decoded
  let count = 0
  for (const question of questions) count += branchCount(question)
  if (count > LIMITS.branchesMax) {
    throw new Fault(
      "too_many_branches",
      `Cannot classify: the questions expand to ${count} branches; at most ${LIMITS.branchesMax} fit one request`,
    )
  }
  const branches: Branch[] = []
  for (const question of questions) for (const branch of expandQuestion(question)) branches.push(branch)
  return { wire, model, evidence, questions, questionNames, branches }
}

/** Throws Fault `input_too_large` for evidence that is too long; `what` is what the wire calls it. */
export function refuseOversizedEvidence(evidence: string, what: string): void {
  if (fitsUtf8(evidence, LIMITS.evidenceBytesMax)) return
  throw new Fault(
    "input_too_large",
    `Cannot classify: ${what} has ${utf8Bytes(evidence)} bytes; at most ${LIMITS.evidenceBytesMax} are accepted`,
  )
}

/** Characters that a wording adds at most. */
const WORDING_CHARACTERS_MAX = 128

/** The branches of a question, in the order of its options or levels; throws Fault `question_too_large`. */
export function expandQuestion(question: Question): Branch[] {
  const branches = branchesOf(question)
  if (!branches.every(isShort)) refuseOversized(question, branches)
  return branches
}

/** So short that it fits however many bytes its characters take; most branches are, and need not be counted. */
const isShort = (branch: Branch): boolean =>
  (branchLength(branch) + WORDING_CHARACTERS_MAX) * 3 <= LIMITS.expandedQuestionBytesMax

/** Characters of a branch's own texts, without those of a wording. */
export function branchLength(branch: Branch): number {
  const { question } = branch
  switch (branch.kind) {
    case "predicate":
      return question.length + branch.yesMeans.length + branch.noMeans.length
    case "choice":
      return question.length + branch.value.length + branch.description.length
    case "score":
      return question.length + branch.label.length + branch.description.length
  }
}

/**
 * The limit counts a branch as it is put to a language model, whichever model answers. Sizes of well-formed parts add up, so
 * that a long question is counted once and not once per option.
 */
function refuseOversized({ path, instructions }: Question, branches: readonly Branch[]): void {
  const questionBytes = utf8Bytes(instructions)
  for (const branch of branches) {
    const bytes = questionBytes + utf8Bytes(promptText({ ...branch, question: "" }))
    if (bytes > LIMITS.expandedQuestionBytesMax) throw tooLarge(path, bytes)
  }
}

function branchesOf(question: Question): Branch[] {
  const { instructions } = question
  switch (question.type) {
    case "predicate": {
      const { yesMeans, noMeans } = question
      return [{ kind: "predicate", question: instructions, yesMeans, noMeans }]
    }
    case "choice":
      return coherentChoice(
        question.options.map(({ value, description }, _, { length }) => ({
          kind: "choice",
          question: instructions,
          value: String(value),
          description,
          options: length,
        })),
      )
    case "score":
      return coherentScore(
        question.levels.map(({ label, description }, level, { length }) => ({
          kind: "score",
          question: instructions,
          label,
          description,
          level,
          levels: length,
        })),
      )
  }
}

const tooLarge = (path: string, bytes: number): Fault =>
  new Fault(
    "question_too_large",
    `Cannot classify: ${path} expands to ${bytes} bytes; at most ${LIMITS.expandedQuestionBytesMax} are accepted`,
  )

/** The body, its questions, one of them and its criteria stand around the deepest description. */
const envelopeDepth = 4
const shownCharactersMax = 40

/** Reads a body that must be one JSON object; throws Fault `body_too_large`, `invalid_json` or `invalid_request`. */
export function readBody(body: Uint8Array): JsonObject {
  if (body.byteLength > LIMITS.bodyBytesMax) {
    throw new Fault(
      "body_too_large",
      `Cannot read the body: it has ${body.byteLength} bytes; at most ${LIMITS.bodyBytesMax} are accepted`,
    )
  }
  return asObject(readValue(body), "the body")
}

/** Of states and conversations of 4 MiB: what is read takes some 100 bytes of memory for each. The depth is the reader's. */
const bodyBounds = { ...LIMITS, depthMax: Infinity }

function readValue(body: Uint8Array): JsonValue {
  try {
    // Each takes a byte.
    if (body.byteLength > bodyBounds.containersMax) checkJsonBounds(body, bodyBounds)
    return readJson(body, LIMITS.jsonDepthMax + envelopeDepth)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new Fault("invalid_json", `Cannot read the body: ${cause.message}; send one JSON object in UTF-8`, {
      cause,
    })
  }
}

/** The path of a field that the contract names. */
export const fieldPath = (path: string, field: string): string => (path === "" ? field : `${path}.${field}`)

/** The path of an entry whose key the caller chose. */
export const entryPath = (path: string, key: string): string => `${path}[${shown(key)}]`

export function asObject(value: JsonValue | undefined, path: string): JsonObject {
  if (value instanceof JsonObject) return value
  throw wrong(path, value, "an object")
}

export function asList(value: JsonValue | undefined, path: string): JsonList {
  if (isList(value)) return value
  throw wrong(path, value, "a list")
}

export function asString(value: JsonValue | undefined, path: string): string {
  if (typeof value === "string") return value
  throw wrong(path, value, "a string")
}

/** Omitted and null both mean none. */
export function asOptionalString(value: JsonValue | undefined, path: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === "string") return value
  throw wrong(path, value, "a string or null")
}

/** One of the names in `accepted`; the cast of the search is undone by what it finds. */
export function asOneOf<Name extends string>(
  value: JsonValue | undefined,
  accepted: readonly Name[],
  path: string,
): Name {
  const name = asString(value, path)
  const found = accepted.find((candidate) => candidate === name)
  if (found !== undefined) return found
  throw invalid(`${path} is ${shown(name)}`, `it must be ${accepted.map((each) => shown(each)).join(" or ")}`)
}

/** Throws Fault `unknown_field` when an object has a key that is not among `known`. */
export function refuseUnknownFields(object: JsonObject, known: readonly string[], path: string): void {
  let unknown: string | undefined
  for (const key of object.keys()) if (!known.includes(key)) unknown ??= key
  if (unknown === undefined) return
  const where = path === "" ? "the body" : path
  throw new Fault(
    "unknown_field",
    `Cannot read the request: ${where} has the unknown field ${shown(unknown)}; its fields are ${known.join(", ")}`,
  )
}

/** Throws Fault `invalid_request` when a count is outside its bounds; `what` is plural. */
export function refuseCountOutside(count: number, bounds: readonly [number, number], what: string): void {
  const [min, max] = bounds
  if (count >= min && count <= max) return
  throw invalid(`${what} has ${count} entries`, `it must have ${min} to ${max}`)
}

/** Throws Fault `too_many_questions`; counted before any question is looked at. */
export function refuseTooManyQuestions(count: number): void {
  if (count <= LIMITS.questionsMax) return
  throw new Fault(
    "too_many_questions",
    `Cannot classify: there are ${count} questions; at most ${LIMITS.questionsMax} fit one request`,
  )
}

/** Throws Fault `invalid_request` when a name is too long. */
export function refuseLongName(name: string, bytesMax: number, path: string): void {
  if (fitsUtf8(name, bytesMax)) return
  throw invalid(`${path} has ${utf8Bytes(name)} bytes of UTF-8`, `at most ${bytesMax} are accepted`)
}

/** The Fault for a value of the wrong type. */
export const wrong = (path: string, value: JsonValue | undefined, wanted: string): Fault =>
  invalid(`${path} is ${kindOf(value)}`, `it must be ${wanted}`)

export const invalid = (found: string, wanted: string): Fault =>
  new Fault("invalid_request", `Cannot read the request: ${found}; ${wanted}`)

/** Quotes a piece of the request in a sentence, cut so that the sentence stays short. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}...` : text)

function kindOf(value: JsonValue | undefined): string {
  if (value === undefined) return "missing"
  if (value === null) return "null"
  if (typeof value === "string") return "a string"
  if (typeof value === "boolean") return "a boolean"
  if (value instanceof JsonNumber) return "a number"
  return value instanceof JsonObject ? "an object" : "a list"
}

/** The margins of each question that was asked. */
export function marginsOf(
  questions: readonly Question[],
  at: readonly number[],
  margins: Float64Array,
): Float64Array[] {
  let start = 0
  return at.map((index) => margins.slice(start, (start += branchCount(questions[index] as Question))))
}
