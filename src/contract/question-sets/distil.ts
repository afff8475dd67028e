/** What a set learns from a larger model: a job that asks it about texts, and what its answers were worth. */
import { z } from "zod"
import { UsdText } from "../platform/field-schemas.ts"
import { ExampleInput } from "./examples.ts"
import { VersionReference } from "./sets.ts"

const share = z.number().min(0).max(1)

export const distilLimits = {
  textsMax: 2000,
  /** Of the texts, as JSON. */
  textsBytesMax: 8 * 1024 * 1024,
} as const

export const distilFailuresListed = 100

export const DistilRequest = z
  .strictObject({
    version: VersionReference.default("latest"),
    model: z.string().min(1).max(256).describe("Who answers: any model that decides, but no cascade."),
    questions: z.array(z.string().max(64)).min(1).max(256).optional().describe("Without it, all."),
    budget_usd: UsdText.describe(
      "No text is asked about that could make all of them cost more, what was paid for their answers before included.",
    ),
    texts: z
      .array(ExampleInput)
      .min(1)
      .max(distilLimits.textsMax)
      .optional()
      .describe(
        `Without them the newest ${distilLimits.textsMax} kept requests of the set: what the model answered about them, as a shadow or a later stage of a cascade, becomes labels without being asked again.`,
      ),
  })
  .meta({ id: "QuestionSetDistilRequest" })

export const DistilResult = z
  .object({
    model: z.string().describe("Who answered."),
    texts: z.int().describe("Given, each once."),
    labelled: z.int().describe("That the model answered."),
    known: z.int().describe("That it had answered before; they were not asked again."),
    failed: z
      .array(
        z.object({ row: z.int().describe("From 1, among the texts that were given."), reason: z.string() }),
      )
      .describe(`Texts that it could not answer; the first ${distilFailuresListed}.`),
    failed_count: z.int(),
    left: z.int().describe("Texts that the budget did not allow."),
    spent_usd: z.string().describe("What the answers to these texts cost, those known before included."),
  })
  .meta({ id: "QuestionSetDistilResult" })
export type DistilResult = z.infer<typeof DistilResult>

export const TeacherReport = z
  .object({
    models: z.array(z.string()),
    labels: z
      .int()
      .describe("Texts that were learnt from with the teacher's answer, for nobody had labelled them."),
    weight: share.describe(
      "What such an answer counts beside a person's label: chosen by cross-validation against people's labels alone.",
    ),
    outdated: z
      .int()
      .describe("Answers to other words of the question, from before it was changed: they are left out."),
    judged: z.int().describe("Texts that both a person and the teacher labelled."),
    right: z.int().describe("Of these, those where the teacher agrees with the person."),
    share: share
      .nullable()
      .describe(
        "Of the decisions: what the set answers itself at the promised accuracy, proven on people's labels; null: nothing is promised.",
      ),
    cost_before_usd: z
      .string()
      .nullable()
      .describe("Of 1,000 decisions by the teacher; null: it is not known."),
    cost_after_usd: z
      .string()
      .nullable()
      .describe("Of 1,000 decisions by the set, where the teacher answers those below the threshold."),
    sentence: z.string(),
  })
  .meta({ id: "TaughtTeacher" })
export type TeacherReport = z.infer<typeof TeacherReport>
