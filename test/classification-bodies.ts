/** Builds request bodies of the classification endpoints for tables of scenarios. */

export type ClassificationEndpoint = "/v1/decisions" | "/v1/systemone"

/** A body for a model; made when it is needed, since some are megabytes. */
export type BodyFor = (model: string) => string | Uint8Array

/** A request that lacks nothing, with some fields replaced; a field set to undefined is left out. */
export const decisions =
  (fields: Record<string, unknown>): BodyFor =>
  (model) =>
    JSON.stringify({ model, input: "The sky is blue.", questions: [predicate()], ...fields })

export const systemOne =
  (fields: Record<string, unknown>): BodyFor =>
  (model) =>
    JSON.stringify({ model, state: "The sky is blue.", questions: { q: noul() }, ...fields })

export const ask = (...questions: unknown[]): BodyFor => decisions({ questions })
export const askNamed = (question: unknown): BodyFor => systemOne({ questions: { q: question } })

export const predicate = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "predicate",
  instructions: "Is the sky blue?",
  ...fields,
})

export const choice = (choices: unknown, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "choice",
  instructions: "Which colour?",
  choices,
  ...fields,
})

export const score = (levels: unknown, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "score",
  instructions: "How blue?",
  levels,
  ...fields,
})

export const noul = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "noul",
  instructions: "Is the sky blue?",
  ...fields,
})

/** A System One choice or score; they differ in what their criteria are. */
export const rubric = (type: "choice" | "score", criteria: unknown): Record<string, unknown> => ({
  type,
  instructions: "How blue?",
  criteria,
})

export const userMessage = (
  content: unknown,
  fields: Record<string, unknown> = {},
): Record<string, unknown> => ({
  role: "user",
  content,
  ...fields,
})

export const textPart = (text: unknown): Record<string, unknown> => ({ type: "input_text", text })

export const options = (count: number): { value: string }[] =>
  Array.from({ length: count }, (_, at) => ({ value: `option ${at}` }))

export const levels = (count: number): { label: string }[] =>
  Array.from({ length: count }, (_, at) => ({ label: `level ${at}` }))

export const named = <Value>(count: number, value: Value): Record<string, Value> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, value]))

export const repeated = <Value>(count: number, value: Value): Value[] =>
  Array.from({ length: count }, () => value)

/** JSON lists inside one another; `[[]]` is two levels. */
export const nestedLists = (count: number): string => "[".repeat(count) + "]".repeat(count)

/** A body whose fields are written out, for JSON that JSON.stringify would not write. */
export const bodyText =
  (fields: string) =>
  (model: string): string =>
    `{"model":${JSON.stringify(model)},${fields}}`

export const noulText = '{"type":"noul","instructions":"q"}'

export const systemOneText = (state: string, questions = `{"q":${noulText}}`): ((model: string) => string) =>
  bodyText(`"state":${state},"questions":${questions}`)

export const mebibyte = 1024 * 1024

/** Bytes that a branch has beside the instructions: those of a predicate, and of a level 0 of 2 labelled "a". */
export const predicateWordingBytes = "\n\nQuestion: \nAnswer yes or no.".length
export const levelWordingBytes =
  "\n\nQuestion: \nProposed rating: a (level 0 of 0..1)\nIs the proposed rating correct? Answer yes or no."
    .length
export const optionWordingBytes =
  "\n\nQuestion: \nProposed answer: a\nIs the proposed answer correct? Answer yes or no.".length
export const expandedBytesMax = 16 * 1024
