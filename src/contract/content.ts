/** Kept content on the wire: what an organization keeps of its requests, how long, and how it is read and deleted. */
import { z } from "zod"
import { AnswerValue } from "./decisions.ts"
import { Document, namedObject, namedStrictObject } from "./endpoint.ts"
import { apiAdmin, apiRead, endpointGroup } from "./endpoint-group.ts"
import { IdWith, Datetime, GivenTime, SearchedText, Text } from "./platform/field-schemas.ts"

export const contentLevels = ["nothing", "answers", "evidence_and_answers"] as const
export type ContentLevel = (typeof contentLevels)[number]

export const contentLimits = {
  patternsMax: 20,
  patternCharactersMax: 500,
  retentionDaysMax: 365,
  /** Of the JSON of one request's content; what is larger is dropped and counted. */
  recordBytesMax: 6 * 1024 * 1024,
} as const

/** The name and version of a question set, as in `model`: `NAME` or `NAME@LABEL`. */
const SetReference = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}(?:@[a-z0-9][a-z0-9._-]{0,63})?$/, {
  error: "the name of a question set, with @ and a version or label",
})

const RedactionPattern = z.strictObject({
  name: Text(64).describe("Stands in the place of what matches: `[name]`."),
  pattern: z
    .string()
    .min(1)
    .max(contentLimits.patternCharactersMax)
    .regex(/^[^\0]*$/, { error: "U+0000 is not allowed" })
    .describe("A regular expression of RE2: no backreferences, no lookaround, linear in time."),
})

const Redaction = namedStrictObject("ContentRedaction", {
  patterns: z
    .array(RedactionPattern)
    .max(contentLimits.patternsMax)
    .default([])
    .describe("What matches is replaced before anything is written to a disk."),
  question_set: SetReference.nullable()
    .default(null)
    .describe("Sentences of the evidence that this set answers with yes, or abstains from, are replaced."),
})

const keep = z.enum(contentLevels)
const sampleRate = z.number().min(0).max(1)
const retentionDays = z.int().min(1).max(contentLimits.retentionDaysMax)

const kept = {
  keep: keep.describe("What is kept of an answered request."),
  sample_rate: sampleRate.describe("Share of the requests that are kept."),
  retention_days: retentionDays.describe("After so many days content is deleted."),
}

export const defaultContentSettings = {
  keep: "nothing",
  sample_rate: 1,
  retention_days: 30,
  redact: { patterns: [], question_set: null },
} as const

const settings = { ...kept, redact: Redaction }

const KeptOfKey = z.strictObject(kept).meta({ id: "KeyContent" })

export const ContentSettings = namedObject("ContentSettings", {
  ...settings,
  keys: z
    .array(z.object({ api_key_id: z.string(), ...kept }))
    .describe("API keys with a setting of their own."),
  available: z
    .boolean()
    .describe("False: the installation has no key to encrypt with, so nothing can be kept; see content.md."),
  stored: z.int().describe("Requests whose content is stored now."),
  dropped: z
    .object({
      count: z.int().describe("Requests whose content should have been kept and was not."),
      last_at: Datetime.nullable(),
      reasons: z
        .array(z.object({ reason: z.string(), count: z.int() }))
        .describe("Why: `journal`, `too_large`, `redaction`, `settings`, `decryption`."),
    })
    .describe("What was not kept although it was to be."),
  version: z.int().describe("Counts the changes; `If-Match` takes it."),
})
export type ContentSettings = z.infer<typeof ContentSettings>

export const KeyContentSettings = namedObject("KeyContentSettings", {
  content: KeptOfKey.nullable().describe("Null: what the organization has set."),
  effective: KeptOfKey.describe("What holds for requests with this key."),
})
export type KeyContentSettings = z.infer<typeof KeyContentSettings>

const ContentQuestion = namedObject("ContentQuestion", {
  name: z.string().nullable(),
  type: z.enum(["predicate", "choice", "score"]),
  instructions: z.string(),
  options: z
    .array(z.object({ value: AnswerValue, description: z.string() }))
    .describe("Of a choice its options, of a score its levels; of a predicate none."),
})
export type ContentQuestion = z.infer<typeof ContentQuestion>

const ContentAnswer = namedObject("ContentAnswer", {
  name: z.string().nullable(),
  verdict: AnswerValue.nullable().describe(
    "yes or no; the value of a choice; the index of a level; null: abstained.",
  ),
  abstained: z.boolean(),
  confidence: z.number().min(0).max(1),
  threshold: z.number().min(0).max(1).nullable(),
})
export type ContentAnswer = z.infer<typeof ContentAnswer>

const ContentMessage = namedObject("ContentMessage", {
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(z.object({ id: z.string(), name: z.string(), arguments: z.string() }))
    .optional()
    .describe("Functions that the assistant called."),
  tool_call_id: z.string().optional().describe("Of a tool's message: the call that it answers."),
})
export type ContentMessage = z.infer<typeof ContentMessage>

const ContentInput = namedObject("ContentInput", {
  messages: z
    .array(ContentMessage)
    .describe("The whole conversation of a chat or a response, as the model read it."),
  texts: z
    .array(z.string().nullable())
    .describe("Of an embedding, a moderation or a rerank; null stands for an input that was sent as tokens."),
})
export type ContentInput = z.infer<typeof ContentInput>

export const KeptContent = namedObject("KeptContent", {
  seq_id: z.string(),
  at: Datetime.describe("When the request began."),
  expires_at: Datetime,
  level: z.enum(["answers", "evidence_and_answers"]),
  endpoint: z.string().describe("As `call_source` of the sequence."),
  model: z.string(),
  question_set: z
    .object({ id: z.string(), name: z.string(), version: z.int() })
    .nullable()
    .describe("The question set that answered."),
  api_key_id: z.string().nullable(),
  reference: z.string().nullable().describe("The tag `reference` of the request."),
  evidence: z.string().nullable().describe("The text that was asked about; null where it is not kept."),
  questions: z.array(ContentQuestion).describe("In the order of the answers."),
  answers: z.array(ContentAnswer),
  input: ContentInput.nullable().describe(
    "What was asked, where it is no decision; null where it is not kept.",
  ),
  output: z
    .array(ContentMessage)
    .nullable()
    .describe("What was generated: a message for each choice; null where nothing is."),
  redactions: z.int().describe("How many passages were replaced before storing."),
})
export type KeptContent = z.infer<typeof KeptContent>

export const FoundContent = namedObject("FoundContent", {
  seq_id: z.string(),
  at: Datetime.describe("When the request began."),
  endpoint: z.string(),
  model: z.string(),
  excerpt: z.string().describe("What is around the first place where the text stands."),
})
export type FoundContent = z.infer<typeof FoundContent>

const organization = endpointGroup("/v1/organizations/{org_id}", { area: "Content", write: apiAdmin })

const content = organization.at("/sequences/{seq_id}/content", { seq_id: IdWith("seq") })

export const contentTable = {
  getContentSettings: organization
    .at("/content_settings")
    .get({ summary: "Read what an organization keeps of its requests", output: ContentSettings }),
  putContentSettings: organization.at("/content_settings").put({
    summary: "Set what an organization keeps of its requests; fields left out get their defaults",
    body: z.strictObject({
      keep: keep.default(defaultContentSettings.keep),
      sample_rate: sampleRate.default(defaultContentSettings.sample_rate),
      retention_days: retentionDays.default(defaultContentSettings.retention_days),
      redact: Redaction.prefault({}),
    }),
    output: ContentSettings,
    errors: ["precondition_failed"],
  }),
  getKeyContentSettings: organization
    .at("/api_keys/{key_id}/content_settings")
    .get({ summary: "Read what is kept of the requests of an API key", output: KeyContentSettings }),
  putKeyContentSettings: organization.at("/api_keys/{key_id}/content_settings").put({
    summary: "Set what is kept of the requests of an API key; null takes what the organization has set",
    body: z.strictObject({
      content: z
        .strictObject({
          keep,
          sample_rate: sampleRate.default(1),
          retention_days: retentionDays
            .optional()
            .describe("At most the organization's, which is the default."),
        })
        .nullable(),
    }),
    output: KeyContentSettings,
  }),
  getContent: content.get({
    summary: "Read the kept content of a request; recorded in the audit log",
    output: KeptContent,
    errors: ["conflict"],
  }),
  deleteContent: content.remove({ summary: "Delete the kept content of a request" }),
  deleteContents: organization.at("/content/delete").post({
    summary:
      "Delete kept content by time, by a caller's own reference, or both; also what is still being stored",
    body: z
      .strictObject({
        before: GivenTime.optional().describe("Of requests that began earlier."),
        reference: z.string().min(1).max(128).optional().describe("Of requests with this tag `reference`."),
      })
      .refine(({ before, reference }) => before !== undefined || reference !== undefined, {
        error: "`before` or `reference` is needed",
      }),
    output: z.object({ deleted: z.int() }).meta({ id: "DeletedContent" }),
  }),
  /** A POST: what is searched for may be as private as what is found, and stands in no address. */
  searchContent: organization.at("/content/search").post({
    summary: "Find kept requests by a text in their evidence, conversation or output; newest first",
    access: apiRead,
    body: z.strictObject({
      text: SearchedText.describe("Found whatever its case."),
      cursor: z
        .string()
        .regex(/^\d{1,15}\.seq_\w{1,64}$/)
        .nullish()
        .describe("The `next_cursor` of the page before."),
      limit: z.int().min(1).max(50).default(20),
    }),
    output: z
      .object({
        data: z.array(FoundContent).nullable().describe("Null when the request is repeated."),
        next_cursor: z
          .string()
          .nullable()
          .describe(
            "Null at the end. One request reads a bounded number of kept requests: a page may have fewer than asked for, or none, and not be the last.",
          ),
      })
      .meta({ id: "FoundContents" }),
    wrap: "none",
    secrets: ["data"],
  }),
  exportContent: organization.at("/content/export").get({
    summary: "Export kept content as JSON lines, oldest first; recorded in the audit log",
    access: apiAdmin,
    query: z.object({
      from: GivenTime.optional().describe("Inclusive."),
      to: GivenTime.optional().describe("Exclusive."),
    }),
    output: z.instanceof(Document),
    produces: "application/jsonl",
  }),
}
