/** The wire of POST /v1/systemone: a map of named questions about one state, answered under the same names. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import {
  AnswerVerdict,
  LIMITS,
  type WireRule,
  bytesAtMost,
  evidenceFits,
  notBlank,
  onWire,
  questionsAtMost,
  ruled,
} from "./decisions.ts"
import { namedStrictObject } from "./endpoint.ts"

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

export const jsonContainer = [
  recordOf(bodyText(), jsonValue, LIMITS.valuesMax),
  z.array(jsonValue).max(LIMITS.valuesMax),
] as const
const wanted = "text, an object or a list"

const SystemOneState = ruled(
  onWire(z.union([bodyText().min(1), ...jsonContainer]), { wanted, rendered: { isNullable: false } }),
  {
    code: "input_blank",
    holds: (state) => state !== "",
    found: () => "is empty; it must render to some text",
  },
  evidenceFits(rendered),
).meta({
  id: "SystemOneState",
  description:
    "Text, a JSON object or a JSON array; JSON renders compactly with its keys in the order given.",
})
type SystemOneState = z.infer<typeof SystemOneState>

const SystemOneDescription = onWire(z.union([bodyText(), ...jsonContainer]), {
  wanted,
  rendered: { isNullable: true },
}).meta({ id: "SystemOneDescription", description: "Text, a JSON object or a JSON array." })
type SystemOneDescription = z.infer<typeof SystemOneDescription>

function rendered(text: Json): string {
  return typeof text === "string" ? text : JSON.stringify(text)
}

const instructions = ruled(SystemOneDescription, {
  code: "invalid_request",
  holds: (text) => text !== "",
  found: () => "is empty; it must ask something",
})

/** Where a request is read, a record is a map, which keeps the order of its keys. */
const sizeOf = (record: object): number => (record instanceof Map ? record.size : Object.keys(record).length)

const entriesWithin = (min: number, max: number): WireRule<object> => ({
  code: "invalid_request",
  holds: (record) => sizeOf(record) >= min && sizeOf(record) <= max,
  found: (record) => `has ${sizeOf(record)} entries; it must have ${min} to ${max}`,
  isFirst: true,
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
    criteria: ruled(
      recordOf(
        ruled(bodyText(), notBlank("is blank; every option needs a nonblank name")),
        SystemOneDescription,
        LIMITS.optionsMax,
      ),
      entriesWithin(LIMITS.optionsMin, LIMITS.optionsMax),
    ).meta({ description: "1 to 255 options by name, with what each means." }),
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

const questionId = ruled(
  z.string().min(1).max(LIMITS.questionIdBytesMax),
  notBlank("is blank; every question needs a nonblank ID"),
  bytesAtMost(LIMITS.questionIdBytesMax),
)

export const SystemOneRequest = z
  .strictObject({
    model: ruled(
      z.string().min(1).max(LIMITS.modelBytesMax),
      {
        code: "invalid_request",
        holds: (model) => model !== "",
        found: () => "is empty; name a classification model",
      },
      bytesAtMost(LIMITS.modelBytesMax),
    ).meta({ description: "Classification model identifier; nonempty, at most 256 UTF-8 bytes." }),
    state: SystemOneState,
    questions: ruled(
      recordOf(questionId, SystemOneQuestion, LIMITS.questionsMax),
      questionsAtMost(sizeOf),
      entriesWithin(1, LIMITS.questionsMax),
    )
      // Of a request that is read, the branches are counted once they are there.
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

/** What a question set is asked: its questions by ID, or, of a set without any, those of the request. */
export const SystemOneSetRequest = SystemOneRequest.extend({
  questions: ruled(
    recordOf(
      questionId,
      onWire(z.union([SystemOneQuestion, z.strictObject({ type: z.unknown().optional() })]), {
        withField: "instructions",
      }),
      LIMITS.questionsMax,
    ),
    questionsAtMost(sizeOf),
  ),
})

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

const verdict = AnswerVerdict.optional().meta({
  description: "Of answers of a question set; absent of all others.",
})

const SystemOneNoulAnswer = namedStrictObject("SystemOneNoulAnswer", {
  type: z.literal("noul"),
  noul: probability.meta({ description: "Conditional probability of yes versus no." }),
  verdict,
})
type SystemOneNoulAnswer = z.infer<typeof SystemOneNoulAnswer>

const SystemOneChoiceAnswer = namedStrictObject("SystemOneChoiceAnswer", {
  type: z.literal("choice"),
  choice: z.string().meta({ description: "Name of the option with the highest probability." }),
  confidence,
  probabilities: z.record(z.string(), probability).meta({ description: "By option name; they sum to one." }),
  verdict,
})
type SystemOneChoiceAnswer = z.infer<typeof SystemOneChoiceAnswer>

const SystemOneScoreAnswer = namedStrictObject("SystemOneScoreAnswer", {
  type: z.literal("score"),
  score: z.number().min(0).meta({ description: "Expected zero-based level index." }),
  confidence,
  probabilities: z
    .record(z.string(), probability)
    .meta({ description: "By decimal level index; they sum to one." }),
  legend: z
    .record(z.string(), z.string())
    .meta({ description: "Rendered level description by decimal level index." }),
  verdict,
})
type SystemOneScoreAnswer = z.infer<typeof SystemOneScoreAnswer>

export const SystemOneAnswer = z
  .discriminatedUnion("type", [SystemOneNoulAnswer, SystemOneChoiceAnswer, SystemOneScoreAnswer])
  .meta({ id: "SystemOneAnswer", description: "Probabilities are not calibrated model confidence." })
export type SystemOneAnswer = z.infer<typeof SystemOneAnswer>

const SystemOneUsage = namedStrictObject("SystemOneUsage", {
  input_tokens: z.int().min(0).meta({ description: "The shared prefix once plus every branch suffix." }),
  output_tokens: z.literal(0),
})
type SystemOneUsage = z.infer<typeof SystemOneUsage>

export const SystemOneResponse = namedStrictObject("SystemOneResponse", {
  answers: z.record(z.string(), SystemOneAnswer).meta({ description: "Exactly the supplied question IDs." }),
  model: z.string(),
  usage: SystemOneUsage,
})
export type SystemOneResponse = z.infer<typeof SystemOneResponse>
