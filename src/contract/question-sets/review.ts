/** The review queue of a question set: doubtful answers that people label, and what the labels say. */
import { z } from "zod"
import { AnswerValue } from "../decisions.ts"
import { set } from "./sets.ts"
import { apiWrite, endpointGroup } from "../endpoint-group.ts"
import { IdWith, Datetime, Person } from "../platform/field-schemas.ts"
import { Label } from "./examples.ts"

export const reviewReasons = ["abstained", "low_confidence", "shadow_differs", "audit", "label_next"] as const
export type ReviewReason = (typeof reviewReasons)[number]

const decisions = ["label", "not_sure", "skip"] as const
const Review = z
  .object({
    reviewer: Person.nullable().describe("Null for a key of the organization."),
    mine: z.boolean(),
    decision: z.enum(decisions),
    label: AnswerValue.nullable(),
    at: Datetime,
  })
  .meta({ id: "Review" })

export const ReviewItem = z
  .object({
    id: z.string(),
    seq_id: z.string(),
    state: z.enum(["open", "done"]),
    question: z.string().describe("Its name."),
    kind: z.enum(["predicate", "choice", "score"]),
    instructions: z.string(),
    options: z
      .array(z.object({ value: AnswerValue, description: z.string() }))
      .describe("The labels that can be given: yes and no, the options, or the levels by index."),
    evidence: z.string(),
    answer: AnswerValue.nullable().describe("What the set answered; null: it abstained."),
    confidence: z.number().min(0).max(1),
    threshold: z.number().min(0).max(1).nullable(),
    version: z.int().describe("The version that answered."),
    reason: z.enum(reviewReasons),
    second_look: z.boolean().describe("Two reviewers label it, so that their agreement can be measured."),
    reviews: z.array(Review).describe("Those of others are shown when the item is done."),
    created_at: Datetime,
  })
  .meta({ id: "ReviewItem" })
export type ReviewItem = z.infer<typeof ReviewItem>

/** The text of remembered answers is not encrypted, and outlives the content. */
const ReviewedItem = z
  .object({
    ...ReviewItem.shape,
    evidence: z.string().nullable().describe("Null when the request is repeated."),
  })
  .meta({ id: "ReviewedItem" })

export const ReviewSummary = z
  .object({
    open: z.int().describe("For the caller: without what the caller has decided."),
    done: z.int(),
    content: z
      .enum(["kept", "not_kept", "unavailable"])
      .describe("The queue fills only while evidence and answers are kept."),
    sample_rate: z.number().min(0).max(1).describe("Share of all answers that are reviewed at random."),
    labelled_since_taught: z.int(),
    corrected_since_taught: z.int().describe("Of these, where the label is not the answer."),
    agreement: z
      .object({
        pairs: z.int().describe("Items that two reviewers labelled."),
        kappa: z
          .number()
          .nullable()
          .describe("Cohen's kappa; null below two pairs, or where chance explains all."),
        questions: z.array(z.object({ question: z.string(), pairs: z.int(), kappa: z.number().nullable() })),
      })
      .describe("Over the questions, weighted by their pairs."),
    teaching_would_pay: z.boolean(),
    teaching_reason: z.string(),
  })
  .meta({ id: "ReviewSummary" })
export type ReviewSummary = z.infer<typeof ReviewSummary>

/** Counted no further: who reviews sees that there is more than enough to do. */
export const reviewCountMax = 100

export const ReviewQueue = z
  .object({
    set_id: z.string(),
    set_name: z.string(),
    open: z.int().max(reviewCountMax).describe("As in the set's summary, but counted up to 100."),
  })
  .meta({ id: "ReviewQueue" })
export type ReviewQueue = z.infer<typeof ReviewQueue>

const review = set.at("/review")
const item = review.at("/{item_id}", { item_id: IdWith("rev") })
const label = { ...apiWrite, alsoRoles: ["reviewer"] } as const

export const reviewTable = {
  listReviewQueues: endpointGroup("/v1/organizations/{org_id}/review", {
    area: "Question sets",
    write: apiWrite,
  }).get({
    summary: "List the sets with answers that wait for the caller's review; by name",
    output: z.array(ReviewQueue),
  }),
  listReviewItems: review.list({
    summary: "List what waits for review; without what the caller has decided, newest first",
    of: ReviewItem,
    cursor: "rev",
    filters: { state: z.enum(["open", "done"]).default("open") },
  }),
  getReviewSummary: set.at("/review/summary").get({
    summary: "Get how a set's review stands; agreement of reviewers, and whether teaching again would pay",
    output: ReviewSummary,
  }),
  decideReviewItem: item.post({
    summary: "Label an item; a label becomes an example of the set",
    access: label,
    body: z
      .strictObject({
        decision: z.enum(decisions).default("label"),
        label: Label.optional().describe("The right answer; only with the decision `label`."),
      })
      .refine(({ decision, label }) => (decision === "label") === (label !== undefined), {
        error: "the decision label needs a label, and no other has one",
      }),
    output: ReviewedItem,
    secrets: ["evidence"],
  }),
  undoReviewItem: item.at("/label").delete({
    summary: "Take back the caller's own decision; the example is as it was before",
    access: label,
    output: ReviewedItem,
    secrets: ["evidence"],
  }),
  updateReviewSettings: review.patch({
    summary: "Set the share of all answers that are reviewed at random",
    body: z.strictObject({ sample_rate: z.number().min(0).max(1) }),
    output: z.object({ sample_rate: z.number() }).meta({ id: "ReviewSettings" }),
  }),
}
