/** How a set's answers are distributed over time, and whether they drift from a reference window. */
import { z } from "zod"
import { set } from "./sets.ts"
import { Instant } from "../analytics.ts"

export const monitoringLimits = {
  /** Buckets of one answer, for each question. */
  bucketsMax: 400,
  /** How long counts are kept. */
  keptDays: 400,
  confidenceBins: 10,
} as const

const unixMs = z.int().describe("Unix ms.")
const Range = z.object({ start: unixMs, end: unixMs })
const histogram = z
  .array(z.int())
  .length(monitoringLimits.confidenceBins)
  .describe("Answers by confidence: 0 to 0.1, 0.1 to 0.2, ..., 0.9 to 1.")

const counts = {
  rows: z.int().describe("Answers, abstentions included."),
  abstained: z.int(),
  mean_confidence: z.number().nullable().describe("Null without rows."),
  confidence_histogram: histogram,
}

export const Drift = z
  .object({
    psi: z.number().nullable().describe("Population stability index; null with too few rows."),
    p_value: z.number().nullable().describe("Of the chi-square test of homogeneity."),
    rows: z.int(),
    reference_rows: z.int(),
    verdict: z.enum(["none", "small", "large", "too_few_rows"]),
  })
  .meta({ id: "AnswerDrift" })
export type Drift = z.infer<typeof Drift>

const MonitoredQuestion = z
  .object({
    name: z.string(),
    ...counts,
    latency_ms: z.number().nullable().describe("Mean of the requests that asked it."),
    cost_cents: z.number().describe("Its share of the cost of the requests that asked it."),
    answers: z.array(
      z.object({
        answer: z
          .string()
          .nullable()
          .describe("`yes`, `no`, an option's value or the index of a level; null: all beyond the first 20."),
        rows: z.int(),
        reference_rows: z.int(),
      }),
    ),
    reference: z.object(counts),
    drift: Drift,
    series: z.array(
      z.object({
        start: unixMs,
        ...counts,
        answers: z.array(z.int()).describe("Rows of each of the question's `answers`, in their order."),
        latency_ms: z.number().nullable(),
        cost_cents: z.number(),
      }),
    ),
  })
  .meta({ id: "MonitoredQuestion" })
export type MonitoredQuestion = z.infer<typeof MonitoredQuestion>

const MonitoredLanguages = z
  .object({
    languages: z.array(
      z.object({
        language: z
          .string()
          .nullable()
          .describe("A primary tag or `unknown`; null: all beyond the first 20."),
        rows: z.int(),
        reference_rows: z.int(),
      }),
    ),
    drift: Drift,
    series: z.array(
      z.object({
        start: unixMs,
        rows: z.array(z.int()).describe("Texts in each of the `languages`, in their order."),
      }),
    ),
  })
  .meta({ id: "MonitoredLanguages", description: "In which languages the set's texts came." })
export type MonitoredLanguages = z.infer<typeof MonitoredLanguages>

export const QuestionSetMonitoring = z
  .object({
    range: Range,
    reference: Range,
    bucket: z.enum(["hour", "day"]),
    versions: z.array(z.int()).describe("Those that answered in the range."),
    questions: z.array(MonitoredQuestion),
    languages: MonitoredLanguages,
  })
  .meta({ id: "QuestionSetMonitoring" })
export type QuestionSetMonitoring = z.infer<typeof QuestionSetMonitoring>

export const monitoringTable = {
  getQuestionSetMonitoring: set.at("/monitoring").get({
    summary: "How answers were distributed, with their drift; counted by the hour, no content is kept",
    query: z.object({
      range_start: Instant.optional().describe(
        "Unix ms, cut to the hour; seven days before the end unless given.",
      ),
      range_end: Instant.optional().describe("Unix ms; now unless given."),
      bucket: z.enum(["hour", "day"]).default("day"),
      reference_start: Instant.optional().describe(
        "The reference window; without it, the time before the range that is as long as it.",
      ),
      reference_end: Instant.optional(),
      version: z.coerce
        .number()
        .int()
        .min(1)
        .max(999_999_999)
        .optional()
        .describe("Only answers of this version; all unless given."),
    }),
    output: QuestionSetMonitoring,
  }),
}
