/** The request log: an organization's events one by one, newest first, a page at a time; and one by its id. */
import { timeOfId } from "../../base/ids.ts"
import { usdText } from "../../base/money.ts"
import type { Filter, Sequence } from "../../contract/analytics.ts"
import { unknownLanguage } from "../../contract/language.ts"
import { type SequenceDetail, principalKinds } from "../../contract/sequences.ts"
import { type Dialect, type EventEngine, StatementWriter } from "./engine.ts"
import { StoredRow, attemptsOf, stagesOf, tagsOf } from "./event.ts"
import { conditions, tagMatch } from "./selection.ts"

/** Columns that a filter compares for equality. */
type FilteredColumn =
  | "api_key_id"
  | "call_source"
  | "result"
  | "error_code"
  | "region"
  | "request_id"
  | "principal_id"
  | "question_set_id"

/** Where a page ends: the next one begins after it. */
export interface PagePosition {
  readonly timestamp: number
  readonly seqId: string
}

export interface LogQuestion {
  readonly organizationId: string
  readonly startMs: number | undefined
  readonly endMs: number | undefined
  /** Newer than most events: the search begins around it. */
  readonly nowMs: number
  readonly equals: Partial<Record<FilteredColumn, string>>
  readonly latencyMs: Bounds
  /** In ticks. */
  readonly cost: Bounds
  readonly questionSetVersion: number | undefined
  /** Each as `key`, `key=value`, or `key=`; all of them must match. */
  readonly tags: readonly string[]
  readonly verdict: "abstained" | "answered" | undefined
  readonly filters: readonly Filter[]
  readonly after: PagePosition | undefined
  readonly limit: number
}

interface Bounds {
  readonly min: number | undefined
  readonly max: number | undefined
}

/** A sequence as the events have it; what is kept of its content is known elsewhere. */
export type SequenceFacts = Omit<SequenceDetail, "content">

export interface LogPage {
  readonly sequences: readonly SequenceFacts[]
  /** Null on the last page. */
  readonly next: PagePosition | null
}

const hourMs = 3_600_000
/** The newest hour is searched first, and then each time four times as much. */
const widening = 4
const widestMs = 8192 * hourMs

export async function listSequences(engine: EventEngine, question: LogQuestion): Promise<LogPage> {
  const rows: StoredRow[] = []
  // One more than the page: whether there is another one.
  const wanted = question.limit + 1
  for (const { startMs, endMs } of windows(question)) {
    rows.push(...(await searchWindow(engine, question, startMs, endMs, wanted - rows.length)))
    if (rows.length >= wanted) break
  }
  const page = rows.slice(0, question.limit)
  const last = page.at(-1)
  return {
    sequences: page.map(factsOf),
    next: last && rows.length > page.length ? { timestamp: last.timestamp, seqId: last.seq_id } : null,
  }
}

export async function findSequenceFacts(engine: EventEngine, lookup: Lookup): Promise<SequenceFacts | null> {
  const row = await findRow(engine, lookup)
  return row ? factsOf(row) : null
}

/** Ranges of time, newest first, that together are all of the question's. */
function* windows({
  startMs = 0,
  endMs,
  nowMs,
  after,
}: LogQuestion): Generator<{ startMs: number; endMs: number }> {
  let end = Math.min(endMs ?? Number.MAX_SAFE_INTEGER, after ? after.timestamp + 1 : Number.MAX_SAFE_INTEGER)
  let widthMs = hourMs
  while (end > startMs) {
    const start = widthMs > widestMs ? startMs : Math.max(startMs, Math.min(end, nowMs) - widthMs)
    yield { startMs: start, endMs: end }
    end = start
    widthMs *= widening
  }
}

async function searchWindow(
  engine: EventEngine,
  question: LogQuestion,
  startMs: number,
  endMs: number,
  limit: number,
): Promise<StoredRow[]> {
  const { dialect } = engine
  const writer = new StatementWriter(dialect)
  const selection = { ...question, startMs, endMs }
  const where = [conditions(selection, dialect, writer), ...logConditions(question, dialect, writer)].join(
    "\n  AND ",
  )
  const text = `
SELECT * FROM ${dialect.table}
WHERE ${where}
ORDER BY timestamp DESC, seq_id DESC
LIMIT ${limit}`
  return StoredRow.readAll(await engine.query(writer.finish(text)))
}

function logConditions(question: LogQuestion, dialect: Dialect, writer: StatementWriter): string[] {
  const { after, equals, latencyMs, cost, tags, verdict, questionSetVersion: version } = question
  return [
    ...Object.entries(equals).map(([column, value]) => `${column} = ${writer.text(value)}`),
    ...within("gateway_latency_ms", latencyMs, writer),
    ...within("cost_ticks", cost, writer),
    ...within("question_set_version", { min: version, max: version }, writer),
    ...tags.map((tag) => `(${tagMatch(tag, dialect, writer)})`),
    ...(verdict === undefined ? [] : [verdictConditions[verdict]]),
    ...(after ? [beforePosition(after, writer)] : []),
  ]
}

/** Only question sets have verdicts, and only requests that were answered. */
const verdictConditions = {
  abstained: "abstained > 0",
  answered: "abstained = 0 AND result = 'success'",
} as const

function within(column: string, { min, max }: Bounds, writer: StatementWriter): string[] {
  return [
    ...(min === undefined ? [] : [`${column} >= ${writer.integer(min)}`]),
    ...(max === undefined ? [] : [`${column} <= ${writer.integer(max)}`]),
  ]
}

function beforePosition({ timestamp, seqId }: PagePosition, writer: StatementWriter): string {
  const at = writer.integer(timestamp)
  return `(timestamp < ${at} OR (timestamp = ${at} AND seq_id < ${writer.text(seqId)}))`
}

function factsOf(row: StoredRow): SequenceFacts {
  return {
    ...sequenceOf(row),
    region: orNull(row.region),
    principal_kind: principalKinds.find((kind) => kind === row.principal_kind) ?? null,
    principal_id: orNull(row.principal_id),
    question_set_id: orNull(row.question_set_id),
    question_set: orNull(row.question_set),
    question_set_version: row.question_set_version,
    questions: row.questions,
    abstained: row.abstained,
    tags: tagsOf(row),
    attempts: attemptsOf(row),
    queue_ms: row.queue_ms,
    route_ms: row.route_ms,
    engine_ms: row.engine_ms,
    virtual_model: orNull(row.virtual_model),
    stages: stagesOf(row).map(({ cost_ticks, ...stage }) => ({
      ...stage,
      cost: usdText(BigInt(cost_ticks)),
    })),
    language: orNull(row.language) ?? unknownLanguage,
    cost: usdText(BigInt(row.cost_ticks)),
  }
}

/** What one event is found by. */
export interface Lookup {
  readonly organizationId: string
  readonly seqId: string
  readonly startMs: number | undefined
  readonly endMs: number | undefined
}

/** An id is made when its request begins; requests that were imported may carry ids of another time. */
const nearMs = 3_600_000

export async function findSequence(engine: EventEngine, lookup: Lookup): Promise<Sequence | null> {
  const row = await findRow(engine, lookup)
  return row ? sequenceOf(row) : null
}

async function findRow(engine: EventEngine, lookup: Lookup): Promise<StoredRow | null> {
  const { startMs = 0, endMs = Number.MAX_SAFE_INTEGER } = lookup
  const madeMs = timeOfId(lookup.seqId)
  if (madeMs !== null) {
    const near = await findBetween(
      engine,
      lookup,
      Math.max(startMs, madeMs - nearMs),
      Math.min(endMs, madeMs + nearMs),
    )
    if (near) return near
  }
  return await findBetween(engine, lookup, startMs, endMs)
}

async function findBetween(
  engine: EventEngine,
  { organizationId, seqId }: Lookup,
  startMs: number,
  endMs: number,
): Promise<StoredRow | null> {
  if (startMs >= endMs) return null
  const writer = new StatementWriter(engine.dialect)
  const text = `
SELECT * FROM ${engine.dialect.table}
WHERE organization_id = ${writer.text(organizationId)} AND seq_id = ${writer.text(seqId)}
  AND timestamp >= ${writer.integer(startMs)} AND timestamp < ${writer.integer(endMs)}
ORDER BY timestamp ASC
LIMIT 1`
  const [found] = StoredRow.readAll(await engine.query(writer.finish(text)))
  return found ?? null
}

function sequenceOf(row: StoredRow): Sequence {
  return {
    seq_id: row.seq_id,
    timestamp: row.timestamp,
    model: row.model,
    call_source: row.call_source,
    result: row.result,
    input_tokens: row.input_tokens,
    cached_input_tokens: row.cached_input_tokens,
    output_tokens: row.output_tokens,
    gateway_latency_ms: row.gateway_latency_ms,
    seq_duration_ms: row.seq_duration_ms,
    tool_calls: [...row.tool_calls],
    api_key_id: orNull(row.api_key_id),
    client_ip: orNull(row.client_ip),
    client_ua: orNull(row.client_ua),
    error_code: orNull(row.error_code),
    error_message: orNull(row.error_message),
    inference_type: orNull(row.inference_type),
    request_id: orNull(row.request_id),
    stop_reason: orNull(row.stop_reason),
  }
}

const orNull = (text: string): string | null => (text === "" ? null : text)
