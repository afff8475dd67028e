/** Work on a question set that takes long: teaching, checking frozen cases, comparing versions. And the report of a shadow. */
import { z } from "zod"
import { AnswerValue } from "../decisions.ts"
import { IdWith, Datetime } from "../platform/field-schemas.ts"
import { DistilRequest, DistilResult, TeacherReport, distilLimits } from "./distil.ts"
import { ExampleInput } from "./examples.ts"
import { VersionReference, set } from "./sets.ts"

const share = z.number().min(0).max(1)
const Interval = z
  .object({ value: z.number(), low: z.number(), high: z.number() })
  .meta({ id: "ConfidenceInterval", description: "With its 95% confidence interval." })
const Figures = z
  .object({ rows: z.int(), accuracy: Interval, calibration_error: Interval, brier: Interval })
  .meta({ id: "TaughtFigures" })
const BeforeAndAfter = z
  .object({ before: Figures.describe("Of the model's own answers."), after: Figures })
  .meta({ id: "TaughtBeforeAndAfter" })

const Promised = z
  .object({
    target: share,
    confidence: share.describe("Probability that the promise holds."),
    promised: z.boolean(),
    threshold: share.nullable(),
    coverage: share.describe("Share of the rows that are answered."),
    accuracy: share.nullable(),
    accuracy_low: share.nullable().describe("One-sided lower bound."),
    rows: z.int().describe("That it was tested on: the held-out rows, or else all, each judged without it."),
    rows_needed: z.int().describe("The fewest rows that can prove the target."),
    sentence: z.string(),
  })
  .meta({ id: "TaughtPromise" })

const LearningPoint = z
  .object({
    rows: z.int().describe("Labels that were learnt from."),
    accuracy: Interval.describe("Over rows that were not learnt from."),
  })
  .meta({ id: "LearningPoint" })

const LabelsNeeded = z
  .object({
    target: share.describe("Share of all answers that are right."),
    reached: z.boolean(),
    low: z
      .int()
      .nullable()
      .describe("More labels that are needed; null: it is reached, or cannot be said yet."),
    high: z.int().nullable(),
    sentence: z.string(),
  })
  .meta({
    id: "LabelsNeeded",
    description:
      "How many more labels a target needs: the learning curve carried on by a power law, as a range of 80%.",
  })

const weighedRule = {
  weight: z.number().describe("In log-odds, as labels weighed it."),
  met: z.int().describe("Labelled rows that meet the rule."),
  right: z.int().describe("Of these, those whose label it speaks for."),
}

const forms = ["zero_shot", "temperature", "option_bias", "head", "words", "head_and_words"] as const

export const Artefact = z
  .object({
    hash: z.string(),
    question: z.string(),
    form: z.enum(forms).describe("What counts most in the taught answers, which are a mean over the forms."),
    forms: z.array(
      z.object({
        form: z.enum(forms),
        log_loss: z.number(),
        standard_error: z.number(),
        weight: share.nullable().describe("How much it counts; null where one form was chosen."),
      }),
    ),
    model_version: z
      .string()
      .describe(
        "It is used with no other version of the model, and with this one for as long as it is there.",
      ),
    rows: z.object({
      train: z.int(),
      held_out: z.int(),
      teacher: z.int().describe("Beside them, texts that only another model has labelled."),
    }),
    examples_hash: z.string(),
    cross_validated: BeforeAndAfter.describe(
      "Over the training rows, each judged by heads that did not see it.",
    ),
    held_out: BeforeAndAfter.nullable().describe("Over rows that were held out; null where none were."),
    baselines: z.object({
      majority: share,
      random: share,
      empty_evidence: share.nullable(),
      answered_without_evidence: z
        .boolean()
        .describe("The taught answers are not surely better than without the text."),
    }),
    curve: z
      .array(z.object({ threshold: share, coverage: share, risk: share, risk_high: share, rows: z.int() }))
      .describe(
        "Share of wrong answers against share of answered rows, over the rows that promises are tested on.",
      ),
    rules: z.array(z.object(weighedRule)).describe("In the order of the question's rules."),
    learning: z
      .array(LearningPoint)
      .describe(
        "Accuracy with a quarter, half and all of the labels; empty where there were too few, or before 0.3.",
      ),
    notes: z.array(z.string()),
    created_at: Datetime,
  })
  .meta({ id: "QuestionSetArtefact" })
export type Artefact = z.infer<typeof Artefact>

const TaughtQuestionCascade = z
  .object({
    target: share.nullable().describe("Null: the thresholds that were in force stay."),
    thresholds: z
      .array(share)
      .describe("One for each stage but the last: an answer less probable is sent on."),
    accuracy: share.describe("Expected of the cascade."),
    accuracy_low: share.describe("One-sided 95% lower bound."),
    rows: z.int().describe("That it was measured on."),
    asked: z.array(share).describe("Share of the rows that each stage is asked."),
    blends: z
      .array(z.object({ first: z.number(), later: z.number() }).nullable())
      .describe(
        "For each stage after the first, the weights by which its answer is combined with the first one's; null: its answer replaces it.",
      ),
  })
  .meta({ id: "TaughtQuestionCascade" })
export type TaughtQuestionCascade = z.infer<typeof TaughtQuestionCascade>

const measured = {
  accuracy: share.describe("Of the answers to all questions."),
  accuracy_low: share.describe("One-sided 95% lower bound."),
  cost_usd: z.string().describe("Mean of a request."),
  latency_ms: z.number().describe("Mean of a request."),
}

const TaughtCascadeReport = z
  .object({
    measured_on: z.enum(["held_out", "cross_validated"]),
    requests: z.int().describe("Examples that it was measured on."),
    ...measured,
    stages: z
      .array(
        z.object({
          model: z.string(),
          asked: share.describe("Share of the requests in which it is asked something."),
          ...measured,
        }),
      )
      .describe("The figures of a stage are those of its model alone, asked everything."),
    sentence: z.string(),
  })
  .meta({ id: "TaughtCascade", description: "What the cascade is expected to do with what was taught." })
export type TaughtCascadeReport = z.infer<typeof TaughtCascadeReport>

/** Of one question's comparison. */
export const shadowPairsMax = 100
const ShadowVerdict = AnswerValue.nullable().describe("As verdicts have it; null: an abstention.")

export const TeachResult = z
  .object({
    version: z.int().nullable().describe("The new version; null when no question was taught."),
    questions: z.array(
      z.object({
        name: z.string(),
        artefact: z.string().nullable().describe("Its hash; null: see `reason`."),
        reason: z.string().nullable().describe("Why the question was not taught."),
        form: z.enum(forms).nullable(),
        accuracy_before: share.nullable().describe("Over the held-out rows, or else cross-validated."),
        accuracy_after: share.nullable(),
        threshold: share.nullable(),
        promise: Promised.nullable(),
        rules: z
          .array(z.object({ when: z.string(), ...weighedRule }))
          .optional()
          .describe("Where the question has rules."),
        labels_needed: LabelsNeeded.nullish().describe("Where there is a target."),
        cascade: TaughtQuestionCascade.optional().describe("Where the model of the set is a cascade."),
        teacher: TeacherReport.optional().describe("Where another model has answered examples."),
      }),
    ),
    cascade: TaughtCascadeReport.optional().describe("Where the model of the set is a cascade."),
  })
  .meta({ id: "QuestionSetTeachResult" })
export type TeachResult = z.infer<typeof TeachResult>

const Flip = z
  .object({
    id: z.string().describe("Of the frozen case or the example."),
    question: z.string(),
    before: AnswerValue,
    after: AnswerValue,
    confidence_before: share,
    confidence_after: share,
  })
  .meta({ id: "QuestionSetFlip", description: "A text that two versions answer differently." })

const QuestionShift = z
  .object({
    name: z.string(),
    texts: z.int(),
    flips: z.int(),
    mean_shift: z.number().describe("Mean absolute difference of the confidences."),
    abstained_before: z.int(),
    abstained_after: z.int(),
    right_before: z.int().describe("Of the labelled ones that were answered."),
    right_after: z.int(),
    labelled: z.int().describe("Texts with a label that neither version was taught with."),
    learnt: z.int().describe("Texts with a label that one of them was taught with: they judge nothing."),
  })
  .meta({ id: "QuestionSetShift" })

export const CompareResult = z
  .object({
    from: z.int(),
    to: z.int(),
    texts: z.int(),
    questions: z.array(QuestionShift),
    flips: z.array(Flip).describe("The first 100."),
  })
  .meta({ id: "QuestionSetCompareResult" })
export type CompareResult = z.infer<typeof CompareResult>

export const CheckResult = z
  .object({
    version: z.int(),
    against: z.int().nullable(),
    cases: z.int(),
    passed: z.int(),
    failed: z.int(),
    abstained: z.int(),
    failures: z
      .array(
        z.object({
          id: z.string(),
          question: z.string(),
          expected: AnswerValue,
          verdict: AnswerValue,
          confidence: share,
        }),
      )
      .describe("The first 100."),
    difference: CompareResult.nullable().describe("To the version that it is checked against."),
  })
  .meta({ id: "QuestionSetCheckResult" })
export type CheckResult = z.infer<typeof CheckResult>

export const nextLimits = {
  countMax: 100,
  candidatesMax: 2000,
  candidatesDefault: 500,
  /** Of the texts that are given, as JSON. */
  textsBytesMax: 8 * 1024 * 1024,
} as const

export const NextResult = z
  .object({
    question: z.string(),
    candidates: z.int().describe("Texts without a label that were chosen from."),
    labelled: z.int(),
    rows: z
      .array(
        z.object({
          row: z.int().nullable().describe("From 1, among the texts that were given; null: a kept request."),
          seq_id: z
            .string()
            .nullable()
            .describe("The kept request, which stands first in the review queue now; null: a given text."),
          answer: AnswerValue.describe("The most probable one as the labels have it so far."),
          confidence: share,
        }),
      )
      .describe("The best first."),
  })
  .meta({ id: "QuestionSetNextResult" })
export type NextResult = z.infer<typeof NextResult>

const jobStates = ["queued", "running", "succeeded", "failed", "cancelled"] as const
const jobShape = {
  id: z.string(),
  state: z.enum(jobStates),
  progress: share,
  error: z.string().nullable(),
  created_at: Datetime,
  started_at: Datetime.nullable(),
  finished_at: Datetime.nullable(),
}
export const SetJob = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("teach"), ...jobShape, result: TeachResult.nullable() }),
    z.object({ kind: z.literal("check"), ...jobShape, result: CheckResult.nullable() }),
    z.object({ kind: z.literal("compare"), ...jobShape, result: CompareResult.nullable() }),
    z.object({ kind: z.literal("next"), ...jobShape, result: NextResult.nullable() }),
    z.object({ kind: z.literal("distil"), ...jobShape, result: DistilResult.nullable() }),
  ])
  .meta({ id: "QuestionSetJob" })
export type SetJob = z.infer<typeof SetJob>

const chargedAs =
  "each text is charged as a request to POST /v1/decisions, so the permission `inference` is needed too"

const job = set.at("/jobs/{job_id}", { job_id: IdWith("job") })

export const jobTable = {
  teachQuestionSet: set.at("/teach").post({
    summary: `Teach a question set from its examples; starts a job that ends in a new version; ${chargedAs}`,
    body: z.strictObject({
      version: VersionReference.default("latest"),
      questions: z.array(z.string().max(64)).min(1).max(256).optional().describe("Without it, all."),
      target_accuracy: z
        .number()
        .gt(0.5)
        .lt(1)
        .optional()
        .describe("For questions that have no `target_accuracy` of their own."),
      hold_out: z
        .boolean()
        .default(false)
        .describe(
          "Measure on a third of the rows, chosen by a hash of their texts, and do not learn from them. Without it every row is learnt from, and each is judged by heads that did not see it.",
        ),
    }),
    output: SetJob,
  }),
  checkQuestionSet: set.at("/check").post({
    summary: `Check the frozen cases of a question set; starts a job; ${chargedAs}`,
    body: z.strictObject({
      version: VersionReference.default("latest"),
      against: VersionReference.optional().describe("Also compares the answers with those of this version."),
    }),
    output: SetJob,
  }),
  runQuestionSetComparison: set.at("/compare").post({
    summary: `Compare the answers of two versions; starts a job over cases and up to 1,000 examples; ${chargedAs}`,
    body: z.strictObject({
      from: VersionReference.default("production"),
      to: VersionReference.default("latest"),
    }),
    output: SetJob,
  }),
  proposeQuestionSetLabels: set.at("/next").post({
    summary: `Propose which texts to label next: uncertain, and different from each other and from what is labelled; starts a job; ${chargedAs}`,
    body: z
      .strictObject({
        version: VersionReference.default("latest"),
        question: z.string().max(64).optional().describe("May be left out where the set has one."),
        count: z.int().min(1).max(nextLimits.countMax).default(10),
        candidates_max: z
          .int()
          .min(1)
          .max(nextLimits.candidatesMax)
          .default(nextLimits.candidatesDefault)
          .describe("Texts that are read at most: the newest kept requests, or the first of those given."),
        texts: z
          .array(ExampleInput)
          .min(1)
          .max(nextLimits.candidatesMax)
          .optional()
          .describe(
            "To choose from; without them kept requests of the set, whose picks come into the review queue.",
          ),
      })
      .meta({ id: "QuestionSetNextRequest" }),
    bodyBytesMax: nextLimits.textsBytesMax,
    output: SetJob,
  }),
  distilQuestionSet: set.at("/distil").post({
    summary: `Ask another model about texts and keep its answers, for teaching to learn from; starts a job; ${chargedAs}`,
    body: DistilRequest,
    bodyBytesMax: distilLimits.textsBytesMax,
    output: SetJob,
  }),
  listQuestionSetJobs: set
    .at("/jobs")
    .list({ summary: "List jobs, newest first", of: SetJob, cursor: "job" }),
  getQuestionSetJob: job.get({ summary: "Get a job", output: SetJob }),
  cancelQuestionSetJob: job.at("/cancel").post({ summary: "Cancel a job", output: SetJob }),
  getQuestionSetArtefact: set
    .at("/artefacts/{hash}", { hash: z.string().regex(/^[0-9a-f]{64}$/) })
    .get({ summary: "Get what teaching found for a question", output: Artefact }),
  getQuestionSetShadowReport: set.at("/shadow").get({
    summary: "Get how a shadow's answers differ",
    output: z
      .object({
        questions: z.array(
          z.object({
            question: z.string(),
            version: z.int(),
            shadow_version: z.int(),
            shadow_model: z.string(),
            answers: z.int(),
            flips: z.int(),
            agreement: share.describe("Share of the answers that are the same; an abstention is an answer."),
            kappa: z
              .number()
              .nullable()
              .describe(
                "Cohen's kappa: agreement beyond chance; null below two answers, or where chance explains all.",
              ),
            confusion: z
              .array(z.object({ verdict: ShadowVerdict, shadow_verdict: ShadowVerdict, answers: z.int() }))
              .describe(
                `Which answer stood beside which, the most frequent first; the first ${shadowPairsMax}.`,
              ),
            mean_shift: z.number(),
            abstained: z.int(),
            shadow_abstained: z.int(),
            first_at: Datetime,
            last_at: Datetime,
          }),
        ),
        days: z
          .array(
            z.object({
              day: z.string().describe("YYYY-MM-DD, in UTC."),
              requests: z.int().describe("That the share chose."),
              questions: z.int().describe("That the shadow answered."),
              changed: z.int().describe("Of these, those that it answered otherwise."),
              unanswered: z
                .int()
                .describe(
                  "Questions that it was not asked: the budget of the day was spent, it failed, or four were running already.",
                ),
              cost_usd: z.string(),
            }),
          )
          .describe("What it was asked and what it cost, of a month, newest first; seconds old."),
      })
      .meta({ id: "QuestionSetShadowReport" }),
  }),
}
