/** The wire of POST /v1/decisions: an ordered list of typed questions about one text, answered in the same order. */
import { z } from "zod"
import { bodyText } from "./check.ts"
import type { FaultCode } from "./errors.ts"
import { namedStrictObject } from "./endpoint.ts"

/** The limits that the contract puts on both classification endpoints. */
export const LIMITS = {
  bodyBytesMax: 8 * 1024 * 1024,
  /** Combined input text of decisions, rendered state of System One. */
  evidenceBytesMax: 4 * 1024 * 1024,
  questionsMax: 4096,
  branchesMax: 4096,
  /** The text of one branch, without the chat template's own tokens. */
  expandedQuestionBytesMax: 16 * 1024,
  modelBytesMax: 256,
  questionIdBytesMax: 256,
  optionsMin: 1,
  optionsMax: 255,
  levelsMin: 2,
  levelsMax: 10,
  /** Arrays and objects inside one another in a state or description. */
  jsonDepthMax: 64,
  /** Of a body: objects and lists, and what they hold after the first of each. */
  containersMax: 262_144,
  valuesMax: 524_288,
} as const

/** Blank is empty or nothing but Unicode white space. */
export const isBlank = (text: string): boolean => !/\P{White_Space}/u.test(text)

/** Size in UTF-8, for well-formed text; counted rather than encoded, so that a browser can do it too. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Half of a surrogate pair is one unit that stands for two of the pair's four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 1 : 2
  }
  return bytes
}

/** Whether text fits a limit; most texts are so short or so long that they need not be counted. */
export function fitsUtf8(text: string, bytesMax: number): boolean {
  if (text.length * 3 <= bytesMax) return true
  return text.length <= bytesMax && utf8Bytes(text) <= bytesMax
}

/** A rule of a schema and how the wires refuse what breaks it. */
export interface WireRule<Value> {
  readonly code: FaultCode
  readonly holds: (value: Value) => boolean
  /** A clause about the value: what it is, and after a semicolon what it must be. */
  readonly found: (value: Value) => string
  /** Looked at before what a container holds. */
  readonly isFirst?: true
}

/** What the wires say or do beyond the schema, where a request is read. */
interface WireMeta {
  readonly rules?: readonly WireRule<never>[]
  /** What the value must be, where the schema's own kinds do not say it well. */
  readonly wanted?: string
  /** Any other value of a literal or discriminator is `unsupported_input`, for this reason. */
  readonly unsupported?: string
  /** Of two objects in a union the first is the one that has this field. */
  readonly withField?: string
  /** JSON is rendered to text, and where a setting says so null to none. */
  readonly rendered?: { readonly isNullable: boolean }
}
export const wireRegistry = z.registry<WireMeta>()

/** `register` of zod does not take a schema whose type is a parameter. */
export function onWire<Schema extends z.core.$ZodType>(schema: Schema, meta: WireMeta): Schema {
  wireRegistry.add<z.core.$ZodType>(schema, meta)
  return schema
}

/** The schema with these rules, for zod and for the wires. */
export function ruled<Schema extends z.ZodType>(
  schema: Schema,
  ...rules: WireRule<z.output<Schema>>[]
): Schema {
  const made = rules.reduce<Schema>(
    (all, { holds, found }) =>
      // zod hands a rule the output of the schema that it is a rule of.
      all.refine((value) => holds(value), { error: ({ input }) => found(input as z.output<Schema>) }),
    schema,
  )
  return onWire(made, { ...wireRegistry.get(schema), rules })
}

export const notBlank = (found: string): WireRule<string> => ({
  code: "invalid_request",
  holds: (text) => !isBlank(text),
  found: () => found,
})

export const bytesAtMost = (bytesMax: number): WireRule<string> => ({
  code: "invalid_request",
  holds: (text) => fitsUtf8(text, bytesMax),
  found: (text) => `has ${utf8Bytes(text)} bytes of UTF-8; at most ${bytesMax} are accepted`,
})

/** Of input and state, by the text that they come to. */
export const evidenceFits = <Value>(textOf: (value: Value) => string): WireRule<Value> => ({
  code: "input_too_large",
  holds: (value) => fitsUtf8(textOf(value), LIMITS.evidenceBytesMax),
  found: (value) => `has ${utf8Bytes(textOf(value))} bytes; at most ${LIMITS.evidenceBytesMax} are accepted`,
})

export const evidenceRules = <Value>(textOf: (value: Value) => string): WireRule<Value>[] => [
  {
    code: "input_blank",
    holds: (value) => !isBlank(textOf(value)),
    found: () => "holds no text; it must have a character that is not blank",
  },
  evidenceFits(textOf),
]

export const questionsAtMost = <Questions>(
  countOf: (questions: Questions) => number,
): WireRule<Questions> => ({
  code: "too_many_questions",
  holds: (questions) => countOf(questions) <= LIMITS.questionsMax,
  found: (questions) =>
    `has ${countOf(questions)} entries; at most ${LIMITS.questionsMax} questions fit one request`,
  isFirst: true,
})

const onlyUserText = { unsupported: "only text of user messages is supported" }

const name = bodyText().nullable().meta({ description: "Echoed in the answer; it does not affect scoring." })
const instructions = bodyText().meta({ description: "What is asked about the input." })
const description = bodyText()
  .nullable()
  .optional()
  .meta({ description: "Shown to the model beside the value." })
const probability = z.number().min(0).max(1)
const confidence = z.number().min(0).max(1)

const DecisionInputText = z
  .strictObject({ type: onWire(z.literal("input_text"), onlyUserText), text: bodyText() })
  .meta({
    id: "DecisionInputText",
    description: "A piece of text; pieces of one message are concatenated verbatim.",
  })
type DecisionInputText = z.infer<typeof DecisionInputText>

const DecisionInputMessage = z
  .strictObject({
    type: onWire(z.literal("message"), onlyUserText).optional(),
    role: onWire(z.literal("user"), onlyUserText),
    content: z
      .union([bodyText(), z.array(DecisionInputText).max(LIMITS.valuesMax)])
      .register(wireRegistry, { wanted: "a string or a list of input_text parts" }),
  })
  .meta({ id: "DecisionInputMessage", description: "A user message; messages are joined by two newlines." })
type DecisionInputMessage = z.infer<typeof DecisionInputMessage>

/** The text of a decisions input. */
export function combinedText(input: string | readonly DecisionInputMessage[]): string {
  if (typeof input === "string") return input
  return input
    .map(({ content }) => (typeof content === "string" ? content : concatenated(content)))
    .join("\n\n")
}

const concatenated = (parts: readonly DecisionInputText[]): string => parts.map(({ text }) => text).join("")

export const DecisionInput = ruled(
  z
    .union([bodyText(), z.array(DecisionInputMessage).max(LIMITS.valuesMax)])
    .register(wireRegistry, { wanted: "a string or a list of user messages" }),
  ...evidenceRules(combinedText),
).meta({ id: "DecisionInput", description: "Text evidence: nonblank, at most 4 MiB of UTF-8 when combined." })
type DecisionInput = z.infer<typeof DecisionInput>

const DecisionChoiceValue = z
  .union([bodyText(), z.boolean()])
  .meta({ id: "DecisionChoiceValue", description: 'The JSON type is kept: true and "true" are two values.' })
type DecisionChoiceValue = z.infer<typeof DecisionChoiceValue>

const DecisionChoiceOption = z
  .strictObject({ value: DecisionChoiceValue, description })
  .meta({ id: "DecisionChoiceOption", description: "One of the values to choose from." })
type DecisionChoiceOption = z.infer<typeof DecisionChoiceOption>

const DecisionScoreLevel = z
  .strictObject({ label: bodyText(), description })
  .meta({ id: "DecisionScoreLevel", description: "A level; its numeric value is its zero-based position." })
type DecisionScoreLevel = z.infer<typeof DecisionScoreLevel>

/** A set keeps `true` and `"true"` apart, as the contract does. */
function repeatedValue(options: readonly DecisionChoiceOption[]): DecisionChoiceValue | undefined {
  const seen = new Set<DecisionChoiceValue>()
  return options.find(({ value }) => seen.size === seen.add(value).size)?.value
}

export const predicateQuestion = z
  .strictObject({ type: z.literal("predicate"), name: name.optional(), instructions })
  .meta({
    id: "DecisionPredicateQuestion",
    description: "Whether a condition holds for the input; one branch.",
  })

export const choiceQuestion = z
  .strictObject({
    type: z.literal("choice"),
    name: name.optional(),
    instructions,
    choices: ruled(z.array(DecisionChoiceOption).min(LIMITS.optionsMin).max(LIMITS.optionsMax), {
      code: "duplicate_choice",
      holds: (options) => repeatedValue(options) === undefined,
      found: (options) =>
        `repeats the value ${JSON.stringify(repeatedValue(options))?.slice(0, 42)}; the values of a choice must be distinct`,
    }),
  })
  .meta({
    id: "DecisionChoiceQuestion",
    description: "Which one of distinct values fits; one branch per option.",
  })

export const scoreQuestion = z
  .strictObject({
    type: z.literal("score"),
    name: name.optional(),
    instructions,
    levels: z.array(DecisionScoreLevel).min(LIMITS.levelsMin).max(LIMITS.levelsMax),
  })
  .meta({
    id: "DecisionScoreQuestion",
    description: "Where on ordered levels the input lies; one branch per level.",
  })

export const DecisionQuestion = z
  .discriminatedUnion("type", [predicateQuestion, choiceQuestion, scoreQuestion])
  .meta({ id: "DecisionQuestion", description: "A typed question; expanded, each branch is at most 16 KiB." })
export type DecisionQuestion = z.infer<typeof DecisionQuestion>

export const questionList = <Question extends z.ZodType>(question: Question) =>
  ruled(
    z.array(question).max(LIMITS.questionsMax),
    questionsAtMost(({ length }) => length),
  )

export const DecisionsRequest = z
  .strictObject({
    model: ruled(
      z.string().min(1).max(LIMITS.modelBytesMax),
      notBlank("is blank; name a classification model"),
      bytesAtMost(LIMITS.modelBytesMax),
    ).meta({ description: "Classification model identifier; nonblank, at most 256 UTF-8 bytes." }),
    safety_identifier: bodyText()
      .nullable()
      .optional()
      .meta({ description: "Accepted for compatibility and ignored." }),
    input: DecisionInput,
    questions: questionList(DecisionQuestion)
      // Of a request that is read, the branches are counted once they are there.
      .refine((questions) => branchCount(questions) <= LIMITS.branchesMax, { error: "Over 4096 branches." })
      .meta({
        description: "Answered independently, in this order; at most 4096 of them and 4096 branches.",
      }),
  })
  .meta({ id: "DecisionsRequest", description: "One text and the questions to answer about it." })
export type DecisionsRequest = z.infer<typeof DecisionsRequest>

const DecisionQuestionName = z.strictObject({ name: bodyText(), type: z.unknown().optional() })

/** What a question set is asked: its questions by name, or, of a set without any, questions like these. */
export const setQuestions = <Question extends z.ZodType>(question: Question) =>
  questionList(onWire(z.union([question, DecisionQuestionName]), { withField: "instructions" }))

export const DecisionsSetRequest = DecisionsRequest.extend({ questions: setQuestions(DecisionQuestion) })

/** A predicate is one branch, a choice one for each option, a score one for each level. */
export function branchCount(questions: readonly DecisionQuestion[]): number {
  return questions.reduce((sum, question) => sum + branchesOf(question), 0)
}

function branchesOf(question: DecisionQuestion): number {
  switch (question.type) {
    case "predicate":
      return 1
    case "choice":
      return question.choices.length
    case "score":
      return question.levels.length
  }
}

/** A label, an option or a verdict: of a predicate yes or no, of a choice a value, of a score the index of a level. */
export const AnswerValue = z.union([z.string(), z.boolean(), z.int()])

/** What a question set made of an answer. */
export const AnswerVerdict = namedStrictObject("AnswerVerdict", {
  value: AnswerValue.meta({
    description: "yes or no; the value of a choice; the index of a score's level; or abstain.",
  }),
  abstained: z.boolean().meta({ description: "Tells an abstention from an option that is called abstain." }),
  confidence: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: "Probability of the answer; compared with the threshold." }),
  threshold: z.number().min(0).max(1).nullable(),
  taught: z.boolean().meta({
    description:
      "Whether what was taught was used; it is not where the version of the model that it was taught on is gone.",
  }),
})
export type AnswerVerdict = z.infer<typeof AnswerVerdict>

const verdict = AnswerVerdict.optional().meta({
  description: "Of answers of a question set; absent of all others.",
})

const DecisionPredicateAnswer = namedStrictObject("DecisionPredicateAnswer", {
  type: z.literal("predicate"),
  name,
  probability: probability.meta({ description: "Conditional probability of yes versus no." }),
  verdict,
})
type DecisionPredicateAnswer = z.infer<typeof DecisionPredicateAnswer>

const DecisionChoiceAnswer = namedStrictObject("DecisionChoiceAnswer", {
  type: z.literal("choice"),
  name,
  choice: DecisionChoiceValue.meta({ description: "The value with the highest probability." }),
  confidence: confidence.meta({
    description: "Winning probability above the uniform baseline, rescaled to [0, 1].",
  }),
  probabilities: z
    .array(z.strictObject({ value: DecisionChoiceValue, probability }))
    .meta({ description: "In the order of the options; they sum to one." }),
  verdict,
})
type DecisionChoiceAnswer = z.infer<typeof DecisionChoiceAnswer>

const DecisionScoreAnswer = namedStrictObject("DecisionScoreAnswer", {
  type: z.literal("score"),
  name,
  score: z
    .number()
    .min(0)
    .meta({ description: "Probability-weighted mean of the zero-based level indices." }),
  confidence: confidence.meta({
    description: "Concentration around the most probable level relative to a uniform spread.",
  }),
  probabilities: z
    .array(z.strictObject({ label: z.string(), value: z.int().min(0), probability }))
    .meta({ description: "In the order of the levels; they sum to one." }),
  verdict,
})
type DecisionScoreAnswer = z.infer<typeof DecisionScoreAnswer>

const DecisionRefusalAnswer = z
  .strictObject({ type: z.literal("refusal"), name })
  .meta({ id: "DecisionRefusalAnswer", description: "Part of the wire; this scorer never produces it." })
type DecisionRefusalAnswer = z.infer<typeof DecisionRefusalAnswer>

export const DecisionAnswer = z
  .discriminatedUnion("type", [
    DecisionPredicateAnswer,
    DecisionChoiceAnswer,
    DecisionScoreAnswer,
    DecisionRefusalAnswer,
  ])
  .meta({ id: "DecisionAnswer", description: "Probabilities are not calibrated model confidence." })
export type DecisionAnswer = z.infer<typeof DecisionAnswer>

const tokens = z.int().min(0)

export const DecisionUsage = namedStrictObject("DecisionUsage", {
  input_tokens: tokens.meta({ description: "The shared prefix once plus every branch suffix." }),
  input_tokens_details: z.strictObject({
    cache_write_tokens: tokens,
    cached_tokens: tokens.meta({ description: "Of input_tokens, what a chat model's provider had cached." }),
  }),
  output_tokens: z.literal(0),
  output_tokens_details: z.strictObject({ reasoning_tokens: z.literal(0) }),
  total_tokens: tokens.meta({ description: "Equal to input_tokens." }),
})
type DecisionUsage = z.infer<typeof DecisionUsage>

export const DecisionsResponse = z
  .strictObject({ answers: z.array(DecisionAnswer), model: z.string(), usage: DecisionUsage })
  .meta({ id: "DecisionsResponse", description: "One answer per question, in question order." })
export type DecisionsResponse = z.infer<typeof DecisionsResponse>
