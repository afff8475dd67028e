/** Labelled rows of a question set, and the cases that it must go on answering right. */
import { z } from "zod"
import { set } from "./sets.ts"
import { bodyText, recordOf } from "../check.ts"
import { fitsUtf8, isBlank } from "../decisions.ts"
import { IdWith, Datetime, SearchedText } from "../platform/field-schemas.ts"
import { questionSetLimits } from "./content.ts"

const listedMax = 100

export const Label = z.union([z.string().max(4096), z.boolean(), z.int().min(0).max(255)]).meta({
  id: "QuestionSetExampleLabel",
  description: "true, false, yes or no; the value of a choice; the index or label of a score's level.",
})
export type Label = z.infer<typeof Label>
const Labels = recordOf(z.string().max(64), Label, questionSetLimits.questionsMax).meta({
  description: "The right answer by the name of the question.",
})

export const ExampleInput = z
  .string()
  .max(questionSetLimits.inputBytesMax)
  .refine((text) => !isBlank(text), { error: "the text is blank" })
  .refine((text) => fitsUtf8(text, questionSetLimits.inputBytesMax), { error: "over 64 KiB of text" })
  .refine((text) => !text.includes("\u0000"), { error: "U+0000 is not allowed" })

export const ExampleRow = z
  .strictObject({
    input: ExampleInput,
    labels: Labels,
    teacher: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe(
        "The model whose answers the labels are. They are kept beside people's labels, and prove no promise.",
      ),
  })
  .meta({ id: "QuestionSetExampleRow" })
export type ExampleRow = z.infer<typeof ExampleRow>

export const TeacherLabel = z
  .object({
    label: Label,
    model: z.string(),
    confidence: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe("As the model states it; null: it is not known."),
    cost_usd: z.string().nullable().describe("What this answer cost; null: it is not known."),
    asked: z
      .string()
      .describe(
        "A hash of the question as the model was asked it: nothing is learnt from answers to other words.",
      ),
  })
  .meta({
    id: "QuestionSetTeacherLabel",
    description:
      "The answer of another model, which teaching learns from as far as people's labels bear it out.",
  })
export type TeacherLabel = z.infer<typeof TeacherLabel>

export const Example = z
  .object({
    id: z.string(),
    input: z.string(),
    labels: Labels,
    teacher_labels: z.record(z.string(), TeacherLabel).describe("By the name of the question."),
    split: z
      .enum(["train", "held_out"])
      .describe("By a hash of the text: the side it is on where teaching holds rows out."),
    source: z
      .enum(["added", "review", "teacher"])
      .describe("What made it: a row that was added, a reviewer's label, or another model's answer."),
    created_at: Datetime,
    updated_at: Datetime,
  })
  .meta({ id: "QuestionSetExample" })
export type Example = z.infer<typeof Example>

export const AddedRows = z
  .object({
    added: z.int(),
    updated: z.int().describe("Known texts that got labels for more questions, or others by `replace`."),
    duplicates: z.int().describe("Known texts with the labels that they have."),
    contradictions: z
      .array(
        z.object({
          row: z.int().describe("From 1."),
          id: z.string().nullable().describe("The example with the same text; null: an earlier row."),
          question: z.string(),
          before: Label,
          now: Label,
        }),
      )
      .describe(
        `Known texts with another label; the first ${listedMax}. Without \`replace\` the row is left out.`,
      ),
    contradictions_count: z.int(),
    refused: z
      .array(z.object({ row: z.int(), reason: z.string() }))
      .describe(`Rows that cannot be used; the first ${listedMax}.`),
    refused_count: z.int(),
  })
  .meta({ id: "QuestionSetAddedRows" })
export type AddedRows = z.infer<typeof AddedRows>
export const addedRowsListedMax = listedMax

const replace = z.boolean().default(false).describe("A row that contradicts a known one replaces its labels.")

export const FrozenCase = z
  .object({ id: z.string(), input: z.string(), expected: Labels, created_at: Datetime })
  .meta({ id: "QuestionSetCase" })
export type FrozenCase = z.infer<typeof FrozenCase>

const example = set.at("/examples/{example_id}", { example_id: IdWith("ex") })

export const exampleTable = {
  listQuestionSetExamples: set.at("/examples").list({
    summary: "List examples, newest first",
    of: Example,
    cursor: "ex",
    filters: {
      split: z.enum(["train", "held_out"]).optional(),
      text: SearchedText.optional().describe(
        "Only examples whose text has it, whatever its case. One request reads a bounded number of texts: a page may have fewer rows than asked for, or none, and a `next_cursor`.",
      ),
    },
  }),
  addQuestionSetExamples: set.at("/examples").post({
    summary: "Add labelled rows; what is a duplicate or a contradiction is named",
    body: z.strictObject({
      rows: z.array(ExampleRow).min(1).max(questionSetLimits.examplesPerRequestMax),
      replace,
    }),
    bodyBytesMax: questionSetLimits.uploadBytesMax,
    output: AddedRows,
  }),
  uploadQuestionSetExamples: set.at("/examples/upload").post({
    summary: "Add labelled rows from a CSV or JSONL file",
    query: z.object({ replace: z.enum(["true", "false"]).default("false").describe("As of POST examples.") }),
    body: bodyText().meta({
      description:
        "CSV with a column `input` and one for each question, or JSON lines with `input` and `labels`; " +
        "a set with one question also takes a column or field `label`.",
    }),
    reads: "bytes",
    consumes: ["text/csv", "application/jsonl"],
    bodyBytesMax: questionSetLimits.uploadBytesMax,
    output: AddedRows,
  }),
  updateQuestionSetExample: example.patch({
    summary: "Label an example anew; null removes the label of a question",
    body: z.strictObject({
      labels: recordOf(z.string().max(64), Label.nullable(), questionSetLimits.questionsMax),
    }),
    output: Example,
  }),
  deleteQuestionSetExample: example.remove({ summary: "Delete an example" }),
  listQuestionSetCases: set
    .at("/cases")
    .list({ summary: "List frozen cases, newest first", of: FrozenCase, cursor: "case" }),
  addQuestionSetCases: set.at("/cases").post({
    summary: "Freeze cases: texts with the answers that every version must give; a known text is replaced",
    body: z.strictObject({
      cases: z
        .array(z.strictObject({ input: ExampleInput, expected: Labels }))
        .min(1)
        .max(questionSetLimits.casesMax),
    }),
    bodyBytesMax: questionSetLimits.uploadBytesMax,
    output: z.object({ added: z.int(), updated: z.int() }).meta({ id: "QuestionSetAddedCases" }),
  }),
  deleteQuestionSetCase: set
    .at("/cases/{case_id}", { case_id: IdWith("case") })
    .remove({ summary: "Delete a frozen case" }),
}
