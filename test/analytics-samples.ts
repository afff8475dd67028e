/** Random events and questions about them, the same for the same seed: ties, gaps, odd texts and all. */
import { mkdir, writeFile } from "node:fs/promises"
import { type Filter, dimensions, metrics } from "../src/contract/analytics.ts"
import type { Question } from "../src/store/events/reports.ts"
import { type JournalPosition, encodeLine, segmentPath } from "../src/store/journal/journal.ts"
import type { RecordedStage, SequenceRecord } from "../src/store/journal/record.ts"

export const epochMs = Date.UTC(2026, 0, 30)
export const spanMs = 5 * 86_400_000
export const organizations = ["org_a", "org_b", "org_c"] as const

/** A small generator with a period of 2^32; the same numbers on every machine. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    // Below the length there is an item, which may itself be undefined.
    return items[this.below(items.length)] as Item
  }

  one<Item>(outOf: number, make: () => Item, otherwise: Item): Item {
    return this.below(outOf) === 0 ? make() : otherwise
  }
}

/** Texts that break careless code: quotes, escapes, placeholders, other scripts, beyond U+FFFF, and colons. */
export const oddTexts = [
  "it's",
  'say "no"',
  "a:b:c",
  "back\\slash",
  "tab\there",
  "line\nend",
  "{p0:String}",
  "$p0",
  "?",
  "%s --",
  "'; DROP TABLE sequences; --",
  "') OR 1=1 --",
  "Ünïcødé",
  "日本語",
  "\u{1F600}",
  "\uFFFD",
  "\uE000",
  " ",
  "__proto__",
  "null",
] as const

const toolNames = ["search", "fetch", "calc", ...oddTexts.slice(0, 6)] as const

export function makeRecord(chance: Chance, index: number): SequenceRecord {
  const failed = chance.below(4) === 0
  return {
    seq_id: `seq_${String(index).padStart(26, "0")}`,
    timestamp: epochMs + chance.below(spanMs),
    organization_id: chance.pick(organizations),
    billing_account_id: "ba_1",
    model: chance.pick(["small", "large", "embedder", ...oddTexts]),
    call_source: chance.pick(["decisions", "systemone", "responses", "chat_completions"]),
    inference_type: chance.pick(["generation", "embedding"] as const),
    result: failed ? "error" : chance.pick(["success", "success", "cancelled"] as const),
    input_tokens: chance.below(3000),
    cached_input_tokens: chance.below(3) * 100,
    output_tokens: chance.below(5),
    execution_ms: chance.below(100),
    gateway_latency_ms: chance.pick([0, 5, 5, 10, chance.below(2000)]),
    seq_duration_ms: chance.below(5000),
    tool_calls: Array.from({ length: chance.one(3, () => chance.below(4), 0) }, () => chance.pick(toolNames)),
    api_key_id: chance.one<string | null>(5, () => null, `key_${chance.below(8)}`),
    client_ip: chance.one<string | null>(5, () => null, `10.0.0.${chance.below(60)}`),
    client_ua: chance.one<string | null>(3, () => null, chance.pick(["curl/8", "openai/7", ...oddTexts])),
    error_code: failed ? chance.pick(["rate_limited", "invalid_request", ""]) : null,
    error_message: failed ? chance.pick(oddTexts) : null,
    request_id: chance.one<string | null>(4, () => null, `req_${chance.below(5000)}`),
    stop_reason: chance.pick(["stop", "length", "tool_calls", null]),
    region: chance.pick(["local", null]),
    cost_ticks: String(chance.below(1000)),
    ...chance.one(10, () => ({}), makeDetails(chance)),
  }
}

/** What records of version 0.1 do not have. */
function makeDetails(chance: Chance): Partial<SequenceRecord> {
  const ofSet = chance.below(3) === 0
  const questions = 1 + chance.below(4)
  return {
    language: chance.pick(["en", "de", "unknown", null]),
    principal_kind: chance.pick(["key", "user", "workload"] as const),
    principal_id: `key_${chance.below(8)}`,
    question_set_id: ofSet ? `qs_${chance.below(4)}` : null,
    question_set: ofSet ? "tickets" : null,
    question_set_version: ofSet ? 1 + chance.below(3) : null,
    questions,
    abstained: ofSet ? chance.below(2) : null,
    tags: makeTags(chance),
    attempts: Array.from({ length: chance.below(3) }, () => ({
      region: "local",
      result: "success",
      ms: 0.25,
    })),
    queue_ms: chance.pick([0, 0.5, null]),
    route_ms: chance.pick([0.01, 12.34]),
    engine_ms: chance.below(1000),
    stages: Array.from({ length: chance.one(3, () => chance.below(4), 0) }, () => makeStage(chance)),
  }
}

/** The same model may have several. */
const makeStage = (chance: Chance): RecordedStage => ({
  model: chance.pick(["small", "large", "large", ...oddTexts.slice(0, 3)]),
  result: chance.pick(["success", "inference_failed"]),
  region: "local",
  questions: chance.pick([1, null]),
  input_tokens: chance.below(3000),
  cached_input_tokens: chance.below(3) * 100,
  output_tokens: chance.below(5),
  ms: chance.below(20_000) / 4,
  cost_ticks: String(chance.below(1000)),
})

export const tagKeys = ["team", "job", "tea", "__proto__", "a.b-c_D"] as const

function makeTags(chance: Chance): Record<string, string> {
  const keys = tagKeys.filter(() => chance.below(3) === 0)
  return Object.fromEntries(keys.map((key) => [key, chance.pick(["ops", "42", "a=b", ...oddTexts])]))
}

/** A tag filter: with a value, without one, or for what lacks the tag. */
export function makeTagFilter(chance: Chance): string {
  const key = chance.pick(tagKeys)
  return chance.pick([key, `${key}=`, `${key}=${chance.pick(["ops", "a=b", ...oddTexts])}`])
}

export function makeQuestion(chance: Chance): Question {
  const startMs = chance.pick([
    epochMs,
    epochMs + chance.below(spanMs),
    epochMs - chance.below(spanMs),
    epochMs + 2 * spanMs,
  ])
  const lengthMs = chance.pick([1, 7, 999, 3_600_000, 3_600_001, 3 * 86_400_000, spanMs, 40 * spanMs])
  return {
    organizationId: chance.pick(["org_nobody", ...organizations, ...organizations]),
    startMs,
    endMs: startMs + lengthMs,
    groupBy: chance.pick([...dimensions, "tag:team", "tag:__proto__"]),
    metric: chance.pick(metrics),
    buckets: chance.pick([undefined, undefined, 0, 1, 2, 17, 60, 1000, 1001]),
    limit: chance.pick([1, 2, 5, 12]),
    filters: Array.from({ length: chance.pick([0, 0, 0, 1, 2, 4]) }, () => makeFilter(chance)),
  }
}

const only = (dimension: Filter["dimension"], value: string, excluded = false): Filter[] => [
  { dimension, value, excluded },
]

/** The cases that are easily got wrong, each by its name, whatever chance draws. */
export function namedQuestions(): [string, Question][] {
  const whole: Question = {
    organizationId: "org_a",
    startMs: epochMs,
    endMs: epochMs + spanMs,
    groupBy: "model",
    metric: "requests",
    buckets: 17,
    limit: 5,
    filters: [],
  }
  return [
    ["an empty range", { ...whole, startMs: epochMs + 2 * spanMs, endMs: epochMs + 3 * spanMs }],
    ["an organization without events", { ...whole, organizationId: "org_nobody" }],
    ["one event, at the start of the range", { ...whole, endMs: epochMs + 1, metric: "p95_latency" }],
    [
      "the end of the range is not in it",
      { ...whole, startMs: epochMs + spanMs - 1, organizationId: "org_b" },
    ],
    ["the event at the end is in the next range", { ...whole, startMs: whole.endMs, endMs: whole.endMs + 1 }],
    ["ties", { ...whole, groupBy: "request_id", limit: 12 }],
    ["ties at zero", { ...whole, metric: "errors", filters: only("result", "success") }],
    ["ties of a percentile", { ...whole, groupBy: "client_ip", metric: "p50_latency", limit: 12 }],
    ["null keys", { ...whole, groupBy: "error_code", metric: "error_rate" }],
    ["null keys found", { ...whole, groupBy: "api_key_id", filters: only("api_key_id", "") }],
    ["null keys excluded", { ...whole, groupBy: "stop_reason", filters: only("stop_reason", "", true) }],
    ["what models cost", { ...whole, metric: "cost", limit: 12 }],
    ["the tokens of one model", { ...whole, metric: "in_tokens", filters: only("model", "large") }],
    [
      "two models of the same requests, counted once",
      { ...whole, groupBy: "result", filters: [...only("model", "large"), ...only("model", "small")] },
    ],
    ["all but one model", { ...whole, metric: "p95_latency", filters: only("model", "large", true) }],
    [
      "tools of one model",
      { ...whole, groupBy: "tool_calls", metric: "cost", filters: only("model", "large") },
    ],
    [
      "tags of one model",
      { ...whole, groupBy: "tag:team", metric: "duration", filters: only("model", "small") },
    ],
    ["other scripts", { ...whole, filters: only("model", "日本語"), limit: 12 }],
    ["values with colons", { ...whole, groupBy: "client_ua", filters: only("client_ua", "a:b:c") }],
    ["tools counted several times", { ...whole, groupBy: "tool_calls", metric: "in_tokens", limit: 12 }],
    ["tools and none", { ...whole, groupBy: "tool_calls", filters: only("tool_calls", "") }],
    ["requests by a tag", { ...whole, groupBy: "tag:team", metric: "in_tokens", limit: 12 }],
    ["a tag with a value", { ...whole, filters: only("tag", "team=ops") }],
    ["a tag with any value", { ...whole, groupBy: "tag:job", filters: only("tag", "team") }],
    ["without a tag", { ...whole, filters: only("tag", "team=") }],
    ["a tag excluded", { ...whole, groupBy: "tag:team", filters: only("tag", "team", true) }],
    ["without a tool", { ...whole, groupBy: "tool_calls", filters: only("tool_calls", "search", true) }],
    ...[0, 1, 1000, 1001, undefined].map((buckets): [string, Question] => [
      `${buckets} buckets`,
      { ...whole, groupBy: "result", metric: "p95_latency", buckets },
    ]),
    ["fewer milliseconds than buckets", { ...whole, endMs: epochMs + 7, buckets: 1000 }],
    ["a limit of one", { ...whole, limit: 1, metric: "duration" }],
    ["a limit of twelve", { ...whole, limit: 12, groupBy: "client_ip", metric: "out_tokens" }],
    ["a limit as large as the groups", { ...whole, limit: 4, groupBy: "call_source", metric: "p95_latency" }],
  ]
}

function makeFilter(chance: Chance): Filter {
  const excluded = chance.below(3) === 0
  if (chance.below(6) === 0) return { dimension: "tag", value: makeTagFilter(chance), excluded }
  const dimension = chance.pick(dimensions)
  const event = makeRecord(chance, 0)
  const tool = chance.pick(["", ...toolNames])
  const missing = dimension === "language" ? "unknown" : ""
  const value = dimension === "tool_calls" ? tool : (event[dimension] ?? missing)
  return { dimension, value, excluded }
}

/** Writes records as a gateway does; answers where its journal ends. */
export async function writeSegment(
  directory: string,
  segment: number,
  records: readonly SequenceRecord[],
): Promise<JournalPosition> {
  await mkdir(directory, { recursive: true })
  const bytes = Buffer.from(records.map((record) => encodeLine(record)).join(""))
  await writeFile(segmentPath(directory, segment), bytes)
  return { segment, offset: bytes.length }
}
