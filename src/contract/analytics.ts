/** Analytics on the wire: what happened to an organization's requests, counted, drawn over time, and one by one. */
import { z } from "zod"
import { endpointGroup } from "./endpoint-group.ts"
import { isTagFilter } from "./tags.ts"
import { namedObject } from "./endpoint.ts"

export const dimensions = [
  "model",
  "api_key_id",
  "call_source",
  "inference_type",
  "request_id",
  "stop_reason",
  "client_ip",
  "client_ua",
  "result",
  "error_code",
  "language",
  "tool_calls",
] as const
export type Dimension = (typeof dimensions)[number]

/** Requests can also be grouped by a tag: `tag:team`. One without the tag has the key "". */
const tagGroupForm = /^tag:[A-Za-z0-9_.-]{1,64}$/
export type GroupBy = Dimension | `tag:${string}`

const GroupBy = z.union(
  [
    z.enum(dimensions),
    z
      .custom<`tag:${string}`>((value) => typeof value === "string" && tagGroupForm.test(value))
      .meta({ type: "string", pattern: tagGroupForm.source, examples: ["tag:team"] }),
  ],
  { error: `one of ${dimensions.join(", ")}, or tag:key is needed` },
)

export const metrics = [
  "requests",
  "errors",
  "in_tokens",
  "cached_in_tokens",
  "out_tokens",
  "cost",
  "duration",
  "p50_latency",
  "p95_latency",
  "error_rate",
] as const
export type Metric = (typeof metrics)[number]

export const bucketsMax = 1000
const limitDefault = 5
const limitMax = 12

/** Whole numbers as people write them in an address: no exponent, no fraction, nothing empty. */
export const WholeNumber = z
  .string()
  .regex(/^-?\d{1,19}$/, { message: "a whole number is needed", abort: true })
  .meta({ type: "integer", pattern: undefined })
  .transform(Number)

/** Unix ms. */
export const Instant = WholeNumber.pipe(
  z
    .number()
    .min(1, { message: "it must be greater than zero", abort: true })
    .max(Number.MAX_SAFE_INTEGER, { message: "it is too large", abort: true }),
)

/** `tag:key`, `tag:key=value`, or `tag:key=` for requests without the tag. */
const filteredBy = [...dimensions, "tag"] as const

const filterCharactersMax = 1024
const filtersMax = 256

export const Filter = z
  .string()
  .max(filterCharactersMax)
  .transform((text, context) => {
    const excluded = text.startsWith("!")
    const colon = text.indexOf(":")
    if (colon < 0) {
      context.addIssue({ code: "custom", message: "a filter is [!]dimension:value" })
      return z.NEVER
    }
    const name = text.slice(excluded ? 1 : 0, colon)
    const dimension = filteredBy.find((known) => known === name)
    if (!dimension) {
      context.addIssue({ code: "custom", message: `a filter begins with one of ${filteredBy.join(", ")}` })
      return z.NEVER
    }
    const value = text.slice(colon + 1)
    if (dimension === "tag" && !isTagFilter(value)) {
      context.addIssue({ code: "custom", message: "a filter by a tag is tag:key or tag:key=value" })
      return z.NEVER
    }
    return { dimension, value, excluded }
  })
export type Filter = z.output<typeof Filter>

export const OverviewQuery = z
  .object({
    range_start: Instant.describe("Unix ms, inclusive."),
    range_end: Instant.describe("Unix ms, exclusive; greater than `range_start`."),
    group_by: GroupBy.describe("The dimension of the breakdown or of the series, or `tag:key`."),
    metric: z.enum(metrics).describe("What is measured for each group."),
    buckets: WholeNumber.transform((count) => Math.min(Math.max(count, 1), bucketsMax))
      .optional()
      .describe("Buckets of the timeseries, clamped to 1 through 1000; by default 60, 72 or 96."),
    view: z
      .enum(["overview", "timeseries"])
      .default("overview")
      .describe("`timeseries` answers one series for each of the top groups."),
    limit: WholeNumber.pipe(z.number().min(1).max(limitMax)).default(limitDefault).meta({
      minimum: 1,
      maximum: limitMax,
      default: limitDefault,
      description: "Top groups of the timeseries view, at most 12.",
    }),
    f: z
      .array(Filter)
      .max(filtersMax)
      .default([])
      .describe("Filters, `[!]dimension:value`; may be repeated."),
  })
  .refine(({ range_start, range_end }) => range_end > range_start, {
    path: ["range_end"],
    message: "it must be greater than range_start",
  })
export type OverviewQuery = z.output<typeof OverviewQuery>

const Long = z.int()

const Range = z.object({ start: Long.describe("Inclusive."), end: Long.describe("Exclusive.") })

const measures = {
  requests: Long,
  errors: Long,
  in_tokens: Long.describe("Without cached ones."),
  cached_in_tokens: Long,
  out_tokens: Long,
  duration_ms: Long.describe("Sum of the durations."),
  p50_latency_ms: Long,
  p95_latency_ms: Long,
}

const CountRow = z.object({ key: z.string(), count: Long })

export const OverviewResponse = namedObject("OverviewResponse", {
  range: Range,
  summary: z.object({ ...measures, error_rate: z.number().describe("Failed divided by all requests.") }),
  timeseries: z.object({ bucket_ms: Long, buckets: z.array(z.object({ t0: Long, t1: Long, ...measures })) }),
  breakdown: z.object({
    dim: GroupBy,
    metric: z.enum(metrics),
    rows: z.array(z.object({ key: z.string(), count: Long, value: z.number() })),
  }),
  status: z.object({ rows: z.array(CountRow) }),
  tool_calls: z.object({ rows: z.array(CountRow) }),
})
export type OverviewResponse = z.infer<typeof OverviewResponse>

export const GroupedTimeseriesResponse = namedObject("GroupedTimeseriesResponse", {
  range: Range,
  dim: GroupBy,
  metric: z.enum(metrics),
  bucket_ms: Long,
  buckets: z.array(z.object({ t0: Long, t1: Long })),
  series: z.array(
    z.object({
      key: z.string().nullable().describe("Null for all groups that are not among the top."),
      values: z.array(z.number()),
    }),
  ),
})
export type GroupedTimeseriesResponse = z.infer<typeof GroupedTimeseriesResponse>

const Words = z.string().nullable()

export const Sequence = namedObject("Sequence", {
  seq_id: z.string(),
  timestamp: Long.describe("Unix ms at which the request began."),
  model: z.string(),
  call_source: z.string(),
  result: z.string(),
  input_tokens: Long.describe("Without cached ones."),
  cached_input_tokens: Long,
  output_tokens: Long,
  gateway_latency_ms: Long,
  seq_duration_ms: Long,
  tool_calls: z.array(z.string()),
  api_key_id: Words,
  client_ip: Words,
  client_ua: Words,
  error_code: Words,
  error_message: Words,
  inference_type: Words,
  request_id: Words,
  stop_reason: Words,
})
export type Sequence = z.infer<typeof Sequence>

export const access = { principals: ["session", "key", "workload"], permission: "api-read" } as const

const analytics = endpointGroup("/v1/organizations/{org_id}/analytics", {
  area: "Analytics",
  read: access,
  write: access,
})

export const analyticsTable = {
  getAnalyticsOverview: analytics.at("/overview").get({
    summary: "Read analytics of a time range; totals, groups and time series",
    query: OverviewQuery,
    output: z.union([OverviewResponse, GroupedTimeseriesResponse]),
    errors: ["analytics_not_configured"],
  }),
  getAnalyticsSequence: analytics.at("/sequences/{seq_id}").get({
    summary: "Read one request by its sequence id",
    query: z
      .object({
        range_start: Instant.optional().describe("Unix ms, inclusive."),
        range_end: Instant.optional().describe("Unix ms, exclusive."),
      })
      .refine(({ range_start = 0, range_end = Infinity }) => range_end > range_start, {
        path: ["range_end"],
        message: "it must be greater than range_start",
      }),
    output: z.object({ sequence: Sequence }),
    errors: ["analytics_not_configured"],
  }),
}
export type AnalyticsTable = typeof analyticsTable
