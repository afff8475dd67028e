/** The request log on the wire: an organization's requests one by one, newest first, found by what is known of them. */
import { z } from "zod"
import { Filter, Instant, Sequence, WholeNumber, access } from "./analytics.ts"
import { endpointGroup } from "./endpoint-group.ts"
import { LanguageTag, unknownLanguage } from "./language.ts"
import { pageOf, pageQuery } from "./platform/field-schemas.ts"
import { TagFilter } from "./tags.ts"
import { namedObject } from "./endpoint.ts"

export const attemptsMax = 8
const tagFiltersMax = 4
const filterCharactersMax = 256
const filtersMax = 32
const versionMax = 1_000_000_000
const latencyMsMax = 4_294_967_295

const contentStates = ["none", "redacting", "answers", "evidence_and_answers", "deleted", "expired"] as const
export type ContentState = (typeof contentStates)[number]

export const principalKinds = ["key", "user", "workload"] as const

const milliseconds = z.number().min(0).nullable()

export const SequenceAttempt = namedObject("SequenceAttempt", {
  region: z.string(),
  result: z
    .string()
    .describe(
      "`success`, the code of the error, or `abandoned` where the request ended before the worker answered.",
    ),
  ms: z.number().min(0),
})
export type SequenceAttempt = z.infer<typeof SequenceAttempt>

const SequenceStage = namedObject("SequenceStage", {
  model: z.string(),
  result: z.string().describe("`success`, the code of the error, or `budget_spent`."),
  region: z.string().nullable().describe("Null where the model never began."),
  questions: z.int().nullable().describe("Of decisions: how many it was asked."),
  input_tokens: z.int(),
  cached_input_tokens: z.int(),
  output_tokens: z.int(),
  ms: z.number().min(0),
  cost: z.string().describe("Charged for it, in USD: an exact decimal number."),
})

export const SequenceDetail = namedObject("SequenceDetail", {
  ...Sequence.shape,
  region: z.string().nullable().describe("Where it ran; null when it never did."),
  principal_kind: z.enum(principalKinds).nullable(),
  principal_id: z.string().nullable().describe("The key, the user, or the identity provider."),
  question_set_id: z.string().nullable(),
  question_set: z.string().nullable().describe("The name of the question set when the request ran."),
  question_set_version: z.int().nullable(),
  questions: z.int().nullable().describe("How many were asked."),
  abstained: z.int().nullable().describe("To how many of them the question set gave no answer."),
  tags: z.record(z.string(), z.string()),
  attempts: z
    .array(SequenceAttempt)
    .describe(`The workers that were tried, in order; at most ${attemptsMax}.`),
  queue_ms: milliseconds.describe("Waiting for a free slot of a worker."),
  route_ms: milliseconds.describe("Choosing regions and workers."),
  engine_ms: milliseconds.describe("In engines: reading, evaluating and generating."),
  virtual_model: z
    .string()
    .nullable()
    .describe("The virtual model that was asked; `model` is the one that answered."),
  stages: z
    .array(SequenceStage)
    .describe("Of a virtual model: the models that worked on it, in order; tokens and cost are their sums."),
  language: z
    .string()
    .describe(`That its text was found to be in, or \`${unknownLanguage}\`, as of requests before 0.3.`),
  cost: z.string().describe("Charged, in USD: an exact decimal number."),
  content: z
    .enum(contentStates)
    .describe("What is kept of evidence and answers; `redacting` while it waits to be redacted before that."),
})
export type SequenceDetail = z.infer<typeof SequenceDetail>

const equals = z.string().max(filterCharactersMax).optional()

const Usd = z
  .string()
  .regex(/^\d{1,8}(\.\d{1,10})?$/, "a decimal number of USD is needed, with at most 10 decimals")
  .optional()

const atMost = (max: number, min = 0) =>
  WholeNumber.pipe(z.number().min(min).max(max)).optional().meta({ minimum: min, maximum: max })

/** A time and an id, in base64url because imported ids may hold anything. */
const sequenceCursorForm = /^\d{16}\.[\w-]{1,1400}$/

export const SequencesQuery = z
  .object({
    ...pageQuery(sequenceCursorForm).shape,
    range_start: Instant.optional().describe("Unix ms, inclusive."),
    range_end: Instant.optional().describe("Unix ms, exclusive; greater than `range_start`."),
    api_key_id: equals.describe("Empty for requests without a key; so with every filter by a text."),
    principal_id: equals.describe("A key, a user or an identity provider."),
    model: equals,
    question_set_id: equals,
    question_set_version: atMost(versionMax, 1),
    endpoint: equals.describe("The `call_source`, such as `decisions` or `chat_completions`."),
    result: z.enum(["success", "error", "cancelled"]).optional(),
    error_code: equals,
    region: equals,
    language: LanguageTag.optional().describe("That the text was found to be in."),
    request_id: equals.describe("The `x-request-id` of the response."),
    latency_ms_min: atMost(latencyMsMax).describe("Of `gateway_latency_ms`, inclusive."),
    latency_ms_max: atMost(latencyMsMax).describe("Of `gateway_latency_ms`, inclusive."),
    cost_min: Usd.describe("USD, inclusive."),
    cost_max: Usd.describe("USD, inclusive."),
    tag: z
      .array(TagFilter)
      .max(tagFiltersMax)
      .default([])
      .describe(
        "`key`, `key=value`, or `key=` for requests without the tag; may be repeated, and all must match.",
      ),
    verdict: z
      .enum(["abstained", "answered"])
      .optional()
      .describe("Of question sets: whether one question was abstained from, or all were answered."),
    f: z
      .array(Filter)
      .max(filtersMax)
      .default([])
      .describe("Filters of the analytics overview, `[!]dimension:value`; may be repeated."),
  })
  .refine(({ range_start = 0, range_end = Infinity }) => range_end > range_start, {
    path: ["range_end"],
    message: "it must be greater than range_start",
  })
  .refine(({ latency_ms_min = 0, latency_ms_max = Infinity }) => latency_ms_max >= latency_ms_min, {
    path: ["latency_ms_max"],
    message: "it must not be less than latency_ms_min",
  })
export type SequencesQuery = z.output<typeof SequencesQuery>

const sequences = endpointGroup("/v1/organizations/{org_id}/sequences", {
  area: "Analytics",
  read: access,
  write: access,
})

export const sequenceTable = {
  listSequences: sequences.get({
    summary: "List requests; newest first, filtered by what is known of them",
    query: SequencesQuery,
    output: pageOf(SequenceDetail),
    wrap: "none",
    errors: ["analytics_not_configured"],
  }),
  getSequence: sequences.at("/{seq_id}").get({
    summary: "Read one request with its timing, attempts, tags and cost",
    output: SequenceDetail,
    errors: ["analytics_not_configured"],
  }),
}
export type SequenceTable = typeof sequenceTable
