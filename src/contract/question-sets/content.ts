/** What a version of a question set holds: a model, questions, and how far each answer is trusted. */
import { z } from "zod"
import {
  LIMITS,
  branchCount,
  choiceQuestion,
  fitsUtf8,
  predicateQuestion,
  scoreQuestion,
} from "../decisions.ts"

export const questionSetLimits = {
  questionsMax: 256,
  /** Of the JSON of one version. */
  contentBytesMax: 1024 * 1024,
  /** YAML takes seconds for each MiB. */
  fileCharactersMax: 512 * 1024,
  setsMax: 1000,
  versionsMax: 10_000,
  labelsMax: 50,
  examplesMax: 10_000,
  examplesPerRequestMax: 1000,
  casesMax: 1000,
  /** Examples and frozen cases of all sets of an organization, and the bytes of their texts and labels. */
  organizationRowsMax: 50_000,
  organizationRowBytesMax: 128 * 1024 * 1024,
  /** The text of one example or frozen case. */
  inputBytesMax: 64 * 1024,
  uploadBytesMax: 8 * 1024 * 1024,
  shadowResultsMax: 10_000,
  /** Of larger models, about kept requests. */
  teacherAnswersMax: 20_000,
  rulesMax: 10,
  /** Of all questions of a set. */
  rulesPerSetMax: 50,
} as const

/** In URLs, file names and `set:NAME`; never what the id of a set may be. */
export const SetName = z.string().regex(/^(?!qs_)[a-z0-9][a-z0-9._-]{0,63}$/, {
  error: "1 to 64 of a-z, 0-9, dot, dash and underscore, beginning with a letter or digit and not with qs_",
})
const SetQuestionName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, {
  error: "1 to 64 of A-Z, a-z, 0-9, dot, dash and underscore",
})

const descriptionCharactersMax = 2000
/** The store cannot hold U+0000. */
export const Description = z
  .string()
  .max(descriptionCharactersMax)
  .regex(/^[^\0]*$/, { error: "U+0000 is not allowed" })

const Calibration = z
  .strictObject({ temperature: z.number().positive().max(100), bias: z.number().min(-100).max(100) })
  .meta({ id: "QuestionSetCalibration", description: "Margins become `margin / temperature + bias`." })

const share = z.number().min(0).max(1)

export const EvidenceRule = z
  .strictObject({
    when: z.string().min(1).max(500).meta({
      description:
        "In CEL: `input` has the fields of JSON evidence, or of lines such as `Tier: gold`; `text` is the evidence. Without loops and regular expressions.",
    }),
    answer: z.union([z.string().max(4096), z.boolean(), z.int().min(0).max(255)]).meta({
      description: "Yes or no; the value of a choice; the label or index of a level.",
    }),
    compare: z
      .enum(["is", "at_least", "at_most"])
      .default("is")
      .meta({ description: "Of a score: whether the rule also speaks for the levels above or below." }),
    weight: z.number().gt(0).max(10).default(2).meta({
      description: "Added to the log-odds of the answers that it speaks for, until labels weigh it anew.",
    }),
  })
  .meta({ id: "EvidenceRule", description: "A prior: a text that meets the rule probably has this answer." })
export type EvidenceRule = z.infer<typeof EvidenceRule>

const settings = {
  name: SetQuestionName.meta({ description: "Unique in the set." }),
  threshold: share.nullable().default(null).meta({
    description: "An answer whose probability is lower is below the threshold; null: none is.",
  }),
  below: z
    .enum(["abstain", "answer"])
    .default("abstain")
    .meta({ description: "The verdict below the threshold." }),
  target_accuracy: z.number().gt(0.5).lt(1).nullable().default(null).meta({
    description: "Teaching chooses a threshold above which answers are right at least this often.",
  }),
  calibration: Calibration.nullable().default(null).meta({ description: "Used where nothing was taught." }),
  rules: z
    .array(EvidenceRule)
    .max(questionSetLimits.rulesMax)
    .optional()
    .meta({ description: "Move answers before any label; teaching weighs them anew." }),
  artefact: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .optional()
    .meta({
      description:
        "What teaching found, by hash. Left out: kept where the question is unchanged. Null: no longer used.",
    }),
}

export const SetQuestion = z
  .discriminatedUnion("type", [
    predicateQuestion.extend(settings).meta({ id: "QuestionSetPredicate" }),
    choiceQuestion.extend(settings).meta({ id: "QuestionSetChoice" }),
    scoreQuestion.extend(settings).meta({ id: "QuestionSetScore" }),
  ])
  .meta({ id: "QuestionSetQuestion", description: "A question of POST /v1/decisions with its settings." })
export type SetQuestion = z.infer<typeof SetQuestion>

export const contentShape = {
  model: z
    .string()
    .min(1)
    .max(LIMITS.modelBytesMax)
    .meta({ description: "The classification model that answers." }),
  questions: z
    .array(SetQuestion)
    .max(questionSetLimits.questionsMax)
    .refine((questions) => new Set(questions.map(({ name }) => name)).size === questions.length, {
      error: "Two questions have the same name.",
    })
    .refine((questions) => branchCount(questions) <= LIMITS.branchesMax, { error: "Over 4096 branches." })
    .refine((questions) => questions.every(fitsOneBranch), { error: "A question expands to over 16 KiB." })
    .refine(
      (questions) =>
        questions.reduce((sum, { rules = [] }) => sum + rules.length, 0) <= questionSetLimits.rulesPerSetMax,
      { error: `Over ${questionSetLimits.rulesPerSetMax} rules.` },
    )
    .refine(
      (questions) => questions.every((one) => (one.rules ?? []).every((rule) => ruleAnswer(one, rule) >= 0)),
      { error: "A rule speaks for an answer that its question does not have." },
    )
    .meta({ description: "None: a request brings its own questions, and the set only calibrates them." }),
  calibration: Calibration.nullable().default(null).meta({
    description: "For questions that have none of their own.",
  }),
}

export const QuestionSetContent = z.strictObject(contentShape)
/** As stored in a version. */
export type QuestionSetContent = z.infer<typeof QuestionSetContent>

/** One file of a set: what `umpire sets pull` writes and `push` reads. */
export const QuestionSetFile = z.strictObject({
  name: SetName.meta({ description: "Asked as `set:NAME`." }),
  description: Description.default(""),
  ...contentShape,
})
export type QuestionSetFile = z.infer<typeof QuestionSetFile>

/** The place of a rule's answer among those of its question; -1: it has no such answer. Yes comes before no. */
export function ruleAnswer(question: SetQuestion, { answer, compare }: EvidenceRule): number {
  if (question.type !== "score" && compare !== "is") return -1
  switch (question.type) {
    case "predicate":
      return ["true", "yes"].includes(String(answer)) ? 0 : ["false", "no"].includes(String(answer)) ? 1 : -1
    case "choice":
      return question.choices.findIndex(({ value }) => String(value) === String(answer))
    case "score":
      return typeof answer === "number"
        ? question.levels[answer]
          ? answer
          : -1
        : question.levels.findIndex(({ label }) => label === answer)
  }
}

/** Wordings add less than this to the texts of a branch. */
const wordingBytesMax = 128

function fitsOneBranch(question: SetQuestion): boolean {
  return alternativesOf(question).every((text) =>
    fitsUtf8(question.instructions + text, LIMITS.expandedQuestionBytesMax - wordingBytesMax),
  )
}

function alternativesOf(question: SetQuestion): string[] {
  switch (question.type) {
    case "predicate":
      return [""]
    case "choice":
      return question.choices.map(({ value, description }) => `${String(value)} - ${description ?? ""}`)
    case "score":
      return question.levels.map(({ label, description }) => `${label} - ${description ?? ""}`)
  }
}

/** A set has at most so many questions that are taught, each in a mebibyte or less. */
export const setFileBytesMax = 64 * 1024 * 1024

export const TaughtSetFile = z.strictObject({
  format: z.literal("umpire-set/1", { error: "This is no file of `umpire sets export`." }),
  name: z.string(),
  version: z.int().positive(),
  hash: z.string(),
  content: QuestionSetContent,
  /** JSON texts; a question names its own by the SHA-256. */
  artefacts: z.array(z.string()),
})
export type TaughtSetFile = z.infer<typeof TaughtSetFile>
