/** The wire of POST /v1/systemone: a map of named questions about one state, answered under the same names. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import { LIMITS, fitsUtf8, isBlank } from "./decisions.ts"

const probability = z.number().min(0).max(1)
const confidence = z.number().min(0).max(1)

type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/** Spelled out, since z.json() refers to itself by a generated name in the printed schema. */
const jsonValue: z.ZodType<Json> = z
  .lazy(() =>
    z.union([
      bodyText(),
      z.number(),
      z.boolean(),
      z.null(),
      z.array(jsonValue).max(LIMITS.valuesMax),
      recordOf(bodyText(), jsonValue, LIMITS.valuesMax),
    ]),
  )
  .meta({ id: "JsonValue", description: "Any JSON." })

const jsonContainer = [
  recordOf(bodyText(), jsonValue, LIMITS.valuesMax),
  z.array(jsonValue).max(LIMITS.valuesMax),
] as const

const SystemOneState = z
  .union([bodyText().min(1), ...jsonContainer])
  .refine((state) => fitsUtf8(rendered(state), LIMITS.evidenceBytesMax), {
    error: "Over 4 MiB when rendered.",
  })
  .meta({
    id: "SystemOneState",
    description:
      "Text, a JSON object or a JSON array; JSON renders compactly with its keys in the order given.",
  })
type SystemOneState = z.infer<typeof SystemOneState>

const SystemOneDescription = z
  .union([bodyText(), ...jsonContainer])
  .meta({ id: "SystemOneDescription", description: "Text, a JSON object or a JSON array." })
type SystemOneDescription = z.infer<typeof SystemOneDescription>

const rendered = (text: SystemOneDescription): string =>
  typeof text === "string" ? text : JSON.stringify(text)

const instructions = SystemOneDescription.refine((text) => text !== "", {
  error: "The instructions are empty.",
})

const noulQuestion = z
  .strictObject({
    type: z.literal("noul"),
    instructions,
    criteria: z
      .strictObject({ true: SystemOneDescription.optional(), false: SystemOneDescription.optional() })
      .nullable()
      .optional()
      .meta({ description: "What yes and what no mean." }),
  })
  .meta({ id: "SystemOneNoulQuestion", description: "A yes/no question; one branch." })

const choiceQuestion = z
  .strictObject({
    type: z.literal("choice"),
    instructions,
    criteria: recordOf(
      bodyText().refine((option) => !isBlank(option), { error: "The option name is blank." }),
      SystemOneDescription,
      LIMITS.optionsMax,
    )
      .refine((options) => within(Object.keys(options).length, LIMITS.optionsMin, LIMITS.optionsMax), {
        error: "A choice has 1 to 255 options.",
      })
      .meta({ description: "1 to 255 options by name, with what each means." }),
  })
  .meta({
    id: "SystemOneChoiceQuestion",
    description: "Which one of named options fits; one branch per option.",
  })

const scoreQuestion = z
  .strictObject({
    type: z.literal("score"),
    instructions,
    criteria: z
      .array(SystemOneDescription)
      .min(LIMITS.levelsMin)
      .max(LIMITS.levelsMax)
      .meta({ description: "What each level means, from level zero up." }),
  })
  .meta({
    id: "SystemOneScoreQuestion",
    description: "Where on ordered levels the state lies; one branch per level.",
  })

export const SystemOneQuestion = z
  .discriminatedUnion("type", [noulQuestion, choiceQuestion, scoreQuestion])
  .meta({
    id: "SystemOneQuestion",
    description: "A typed question; expanded, each branch is at most 16 KiB.",
  })
export type SystemOneQuestion = z.infer<typeof SystemOneQuestion>

const questionId = z
  .string()
  .min(1)
  .max(LIMITS.questionIdBytesMax)
  .refine((id) => !isBlank(id), { error: "The question ID is blank." })
  .refine((id) => fitsUtf8(id, LIMITS.questionIdBytesMax), { error: "Over 256 bytes of UTF-8." })

export const SystemOneRequest = z
  .strictObject({
    model: z
      .string()
      .min(1)
      .max(LIMITS.modelBytesMax)
      .refine((model) => fitsUtf8(model, LIMITS.modelBytesMax), { error: "Over 256 bytes of UTF-8." })
      .meta({ description: "Classification model identifier; nonempty, at most 256 UTF-8 bytes." }),
    state: SystemOneState,
    questions: recordOf(questionId, SystemOneQuestion, LIMITS.questionsMax)
      .refine((questions) => within(Object.keys(questions).length, 1, LIMITS.questionsMax), {
        error: "A request has 1 to 4096 questions.",
      })
      .refine((questions) => branchCount(Object.values(questions)) <= LIMITS.branchesMax, {
        error: "Over 4096 branches.",
      })
      .meta({
        description:
          "1 to 4096 questions by ID, at most 4096 branches; IDs nonblank, at most 256 UTF-8 bytes.",
      }),
  })
  .meta({ id: "SystemOneRequest", description: "One state and the named questions to answer about it." })
export type SystemOneRequest = z.infer<typeof SystemOneRequest>

const within = (count: number, min: number, max: number): boolean => count >= min && count <= max

function branchCount(questions: readonly SystemOneQuestion[]): number {
  const sizes = questions.map((question) => {
    switch (question.type) {
      case "noul":
        return 1
      case "choice":
        return Object.keys(question.criteria).length
      case "score":
        return question.criteria.length
    }
  })
  return sizes.reduce((sum, size) => sum + size, 0)
}

const SystemOneNoulAnswer = z
  .strictObject({
    type: z.literal("noul"),
    noul: probability.meta({ description: "Conditional probability of yes versus no." }),
  })
  .meta({ id: "SystemOneNoulAnswer" })
type SystemOneNoulAnswer = z.infer<typeof SystemOneNoulAnswer>

const SystemOneChoiceAnswer = z
  .strictObject({
    type: z.literal("choice"),
    choice: z.string().meta({ description: "Name of the option with the highest probability." }),
    confidence,
    probabilities: z
      .record(z.string(), probability)
      .meta({ description: "By option name; they sum to one." }),
  })
  .meta({ id: "SystemOneChoiceAnswer" })
type SystemOneChoiceAnswer = z.infer<typeof SystemOneChoiceAnswer>

const SystemOneScoreAnswer = z
  .strictObject({
    type: z.literal("score"),
    score: z.number().min(0).meta({ description: "Expected zero-based level index." }),
    confidence,
    probabilities: z
      .record(z.string(), probability)
      .meta({ description: "By decimal level index; they sum to one." }),
    legend: z
      .record(z.string(), z.string())
      .meta({ description: "Rendered level description by decimal level index." }),
  })
  .meta({ id: "SystemOneScoreAnswer" })
type SystemOneScoreAnswer = z.infer<typeof SystemOneScoreAnswer>

export const SystemOneAnswer = z
  .discriminatedUnion("type", [SystemOneNoulAnswer, SystemOneChoiceAnswer, SystemOneScoreAnswer])
  .meta({ id: "SystemOneAnswer", description: "Probabilities are not calibrated model confidence." })
export type SystemOneAnswer = z.infer<typeof SystemOneAnswer>

const SystemOneUsage = z
  .strictObject({
    input_tokens: z.int().min(0).meta({ description: "The shared prefix once plus every branch suffix." }),
    output_tokens: z.literal(0),
  })
  .meta({ id: "SystemOneUsage" })
type SystemOneUsage = z.infer<typeof SystemOneUsage>

export const SystemOneResponse = z
  .strictObject({
    answers: z
      .record(z.string(), SystemOneAnswer)
      .meta({ description: "Exactly the supplied question IDs." }),
    model: z.string(),
    usage: SystemOneUsage,
  })
  .meta({ id: "SystemOneResponse" })
export type SystemOneResponse = z.infer<typeof SystemOneResponse>
