/** Turns the margins of a classification's branches into the response body of the wire that asked. */
import { Fault } from "../../contract/errors.ts"
import { UnusableMargin, readChoice, readPredicate, readScore } from "../../scoring/answers.ts"
import { branchCount } from "./classification.ts"
import type { Classification, Question } from "./classification.ts"

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
      return `{"type":"predicate","name":${name},"probability":${readPredicate(only(margins))}}`
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const values = question.options.map(({ value }) => JSON.stringify(value))
      const each = values.map(
        (value, option) => `{"value":${value},"probability":${at(probabilities, option)}}`,
      )
      return (
        `{"type":"choice","name":${name},"choice":${at(values, winner)},"confidence":${confidence},` +
        `"probabilities":[${each.join(",")}]}`
      )
    }
    case "score": {
      const { probabilities, score, confidence } = readScore(margins)
      const each = question.levels.map(
        ({ label }, value) =>
          `{"label":${JSON.stringify(label)},"value":${value},"probability":${at(probabilities, value)}}`,
      )
      return (
        `{"type":"score","name":${name},"score":${score},"confidence":${confidence},` +
        `"probabilities":[${each.join(",")}]}`
      )
    }
  }
}

/** Written key by key: an object would move integer-like IDs and option names to the front. */
function encodeSystemOne(classification: Classification, margins: Float64Array, inputTokens: number): string {
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
      return JSON.stringify({ type: "noul", noul: readPredicate(only(margins)) })
    case "choice": {
      const { probabilities, winner, confidence } = readChoice(margins)
      const names = question.options.map(({ value }) => String(value))
      return writeObject([
        ["type", '"choice"'],
        ["choice", JSON.stringify(at(names, winner))],
        ["confidence", JSON.stringify(confidence)],
        [
          "probabilities",
          writeObject(names.map((name, option) => [name, JSON.stringify(at(probabilities, option))])),
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

/** Hands each question the margins of its own branches. */
function eachQuestion<Result>(
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

const only = (margins: Float64Array): number => margins[0] ?? Number.NaN

function at<Member>(list: readonly Member[], position: number): Member {
  // Readings have one element per option or level, so the position is always inside.
  return list[position] as Member
}
