/** Asking a question set at its own address, where the answers come with a verdict. */
import { z } from "zod"
import { classificationErrors } from "../classification.ts"
import { DecisionAnswer, DecisionInput, DecisionUsage } from "../decisions.ts"
import { endpoint } from "../endpoint.ts"
import { questionSetLimits } from "./content.ts"
import { SetPath, VersionReference, setPath } from "./sets.ts"

/** Which version of which set answered: `NAME@7`. */
export const setHeader = "x-umpire-question-set"
/** The names of the questions that the set abstains from, separated by commas; absent when there are none. */
export const abstainedHeader = "x-umpire-abstained"

const decideBytesMax = 1024 * 1024

export const SetVerdict = z
  .object({
    name: z.string(),
    verdict: z
      .union([z.string(), z.boolean(), z.int()])
      .describe("yes or no; the value of a choice; the index of a score's level; or abstain."),
    abstained: z.boolean().describe("Tells an abstention from an option that is called abstain."),
    confidence: z.number().min(0).max(1).describe("Probability of the answer; compared with the threshold."),
    threshold: z.number().min(0).max(1).nullable(),
    taught: z
      .boolean()
      .describe("Whether what was taught was used; it is not with another version of the model."),
    answer: DecisionAnswer,
  })
  .meta({ id: "QuestionSetVerdict" })
export type SetVerdict = z.infer<typeof SetVerdict>

export const QuestionSetDecision = z
  .object({ answers: z.array(SetVerdict), version: z.int(), model: z.string(), usage: DecisionUsage })
  .meta({ id: "QuestionSetDecision" })
export type QuestionSetDecision = z.infer<typeof QuestionSetDecision>

export const decideQuestionSet = endpoint({
  method: "POST",
  path: `${setPath}/decide`,
  area: "Question sets",
  surface: "platform",
  summary: "Ask a question set about one text; charged as POST /v1/decisions",
  access: { principals: ["session", "key", "workload"], permission: "inference" },
  params: SetPath,
  body: z.strictObject({
    input: DecisionInput,
    questions: z
      .array(z.string().max(64))
      .max(questionSetLimits.questionsMax)
      .default([])
      .describe("Names of the questions to ask; none: all."),
    version: VersionReference.optional().describe("Without it the published version, or else the latest."),
  }),
  bodyBytesMax: decideBytesMax,
  callSource: "decisions",
  output: QuestionSetDecision,
  errors: classificationErrors,
})
