/** What is done to the events beside answering: taking them from the journal and from files, writing them to files, adding them up. */
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import { z } from "zod"
import { type SequenceRecord, lineBytesMax } from "../journal/record.ts"
import { type JournalPosition, readJournal } from "../journal/segments.ts"
import { type EventEngine, EventEngineError } from "./engine.ts"
import { type EventRow, columnNames, eventOf, resultNames } from "./event.ts"
import { StatementWriter } from "./statement.ts"

/** One insert: enough for a second of a busy gateway, little enough to be held in memory several times over. */
const batchBytesMax = 4 * 1024 * 1024
const importRowsPerInsert = 20_000

export interface JournalPart {
  /** Names the gateway in the tokens of inserts. */
  readonly gatewayId: string
  readonly directory: string
  readonly from: JournalPosition
  readonly until: JournalPosition
}

export interface Taken {
  readonly next: JournalPosition
  readonly events: number
  readonly damaged: number
}

/** Takes the next batch of the journal; resolves when it is kept. */
export async function takeJournal(engine: EventEngine, part: JournalPart): Promise<Taken> {
  const { gatewayId, directory, from, until } = part
  const { records, next, damaged } = await readJournal(directory, from, { until, bytesMax: batchBytesMax })
  const rows = distinct(records)
  if (rows.length > 0) {
    const span = `${from.segment}.${from.offset}-${next.segment}.${next.offset}`
    await engine.insert(rows, `${gatewayId}:${span}`)
  }
  return { next, events: rows.length, damaged }
}

/** The last of several records of one sequence counts. */
function distinct(records: readonly SequenceRecord[]): EventRow[] {
  return [...new Map(records.map((record) => [record.seq_id, eventOf(record)])).values()]
}

const Text = z.string().nullable().default(null)
const Count = z.number().min(0).default(0)

/** A line of an imported file: what a sequence must have, and what it may lack. */
const ImportedRecord = z.object({
  seq_id: z.string().min(1).max(256),
  timestamp: z.int().min(1),
  organization_id: z.string().min(1).max(256),
  billing_account_id: Text,
  model: z.string(),
  call_source: z.string(),
  inference_type: z.enum(["generation", "embedding"]).default("generation"),
  result: z.enum(resultNames),
  input_tokens: Count,
  cached_input_tokens: Count,
  output_tokens: Count,
  execution_ms: Count,
  gateway_latency_ms: Count,
  seq_duration_ms: Count,
  tool_calls: z.array(z.string()).default([]),
  api_key_id: Text,
  client_ip: Text,
  client_ua: Text,
  error_code: Text,
  error_message: Text,
  request_id: Text,
  stop_reason: Text,
  region: Text,
  cost_ticks: z
    .string()
    .regex(/^\d{1,18}$/)
    .default("0"),
})

/** Takes a file with one JSON object a line. What was taken before is not counted twice, so it may be repeated. */
export async function importFile(engine: EventEngine, file: string): Promise<{ events: number }> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity })
  let waiting: SequenceRecord[] = []
  let number = 0
  let events = 0
  const flush = async (): Promise<void> => {
    const rows = distinct(waiting)
    await engine.insert(
      rows,
      `import:${rows[0]?.seq_id ?? ""}:${rows.at(-1)?.seq_id ?? ""}:${rows.length}:${number}`,
    )
    events += rows.length
    waiting = []
  }
  for await (const line of lines) {
    number++
    if (line.trim() === "") continue
    waiting.push(readLine(line, number))
    if (waiting.length >= importRowsPerInsert) await flush()
  }
  if (waiting.length > 0) await flush()
  return { events }
}

function readLine(line: string, number: number): SequenceRecord {
  if (line.length > lineBytesMax)
    throw new EventEngineError(`Cannot import line ${number}: it has more than ${lineBytesMax} characters`)
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new EventEngineError(`Cannot import line ${number}: it is not JSON`)
  }
  const parsed = ImportedRecord.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new EventEngineError(
    `Cannot import line ${number}: ${issue?.path.join(".") || "its top"}: ${issue?.message ?? "invalid"}`,
  )
}

export interface Excerpt {
  readonly organizationId: string | undefined
  readonly startMs: number
  readonly endMs: number
}

export async function exportFile(
  engine: EventEngine,
  excerpt: Excerpt,
  file: string,
): Promise<{ events: number }> {
  const select = (what: string, order: string): Parameters<EventEngine["query"]>[0] => {
    const writer = new StatementWriter(engine.dialect)
    return writer.finish(`SELECT ${what} FROM ${engine.dialect.table}
WHERE ${excerptOf(excerpt, writer)}${order}`)
  }
  const [row] = await engine.query<{ count: number }>(select("count(*) AS count", ""))
  const order = " ORDER BY organization_id, timestamp, seq_id"
  await engine.writeParquet(select(columnNames.join(", "), order), file)
  return { events: row?.count ?? 0 }
}

/** What an account was charged for in an organization on a day, for one model, as the events have it. */
export interface ChargedSum {
  readonly organization_id: string
  readonly billing_account_id: string
  /** Days since 1970. */
  readonly day: number
  readonly model: string
  readonly sequences: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  /** Decimal text: sums pass 2^53. */
  readonly ticks: string
}

export async function sumCharged(engine: EventEngine, excerpt: Excerpt): Promise<ChargedSum[]> {
  const writer = new StatementWriter(engine.dialect)
  const text = `
SELECT organization_id, billing_account_id, ${engine.dialect.dayNumber("timestamp")} AS day, model,
  count(*) AS sequences, sum(e.input_tokens) AS input_tokens, sum(e.cached_input_tokens) AS cached_input_tokens,
  sum(e.output_tokens) AS output_tokens, CAST(sum(cost_ticks) AS VARCHAR) AS ticks
FROM (
  SELECT organization_id, billing_account_id, timestamp, model, input_tokens, cached_input_tokens, output_tokens, cost_ticks
  FROM ${engine.dialect.table}
  WHERE cost_ticks > 0 AND billing_account_id <> '' AND ${excerptOf(excerpt, writer)}
) AS e
GROUP BY organization_id, billing_account_id, day, model`
  return await engine.query<ChargedSum>(writer.finish(text))
}

function excerptOf({ organizationId, startMs, endMs }: Excerpt, writer: StatementWriter): string {
  const range = `timestamp >= ${writer.integer(startMs)} AND timestamp < ${writer.integer(endMs)}`
  return organizationId === undefined
    ? range
    : `organization_id = ${writer.text(organizationId)} AND ${range}`
}

export interface Holdings {
  readonly events: number
  readonly oldestMs: number | null
  readonly newestMs: number | null
}

export async function holdings(engine: EventEngine): Promise<Holdings> {
  const writer = new StatementWriter(engine.dialect)
  const text = `SELECT count(*) AS events, min(timestamp) AS oldest, max(timestamp) AS newest FROM ${engine.dialect.table}`
  const [row] = await engine.query<{ events: number; oldest: number; newest: number }>(writer.finish(text))
  if (!row || row.events === 0) return { events: 0, oldestMs: null, newestMs: null }
  return { events: row.events, oldestMs: row.oldest, newestMs: row.newest }
}
