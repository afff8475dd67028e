/** What is done to the events beside taking them and answering: writing them to files, adding them up. */
import { type EventEngine, StatementWriter } from "./engine.ts"
import { columnNames } from "./event.ts"
import { column, row, type RowOf } from "../rows.ts"
import { keyOf } from "./selection.ts"

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
  const [events = 0] = column.integer.readAll(await engine.query(select("count(*)", "")))
  const order = " ORDER BY organization_id, timestamp, seq_id"
  await engine.writeParquet(select(columnNames.join(", "), order), file)
  return { events }
}

/** What an account was charged for in an organization on a day, for one model, as the events have it. */
export const ChargedSum = row({
  organization_id: column.text,
  billing_account_id: column.text,
  /** Days since 1970. */
  day: column.integer,
  model: column.text,
  sequences: column.integer,
  input_tokens: column.integer,
  cached_input_tokens: column.integer,
  output_tokens: column.integer,
  /** Decimal text: sums pass 2^53. */
  ticks: column.text,
})
export type ChargedSum = RowOf<typeof ChargedSum>

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
  return ChargedSum.readAll(await engine.query(writer.finish(text)))
}

/** What an account was charged on a day for requests with one value of a tag; "" for those without it. */
const TagSpend = row({
  /** Days since 1970. */
  day: column.integer,
  value: column.text,
  /** Decimal text: sums pass 2^53. */
  ticks: column.text,
})
export type TagSpend = RowOf<typeof TagSpend>

export interface TagSpendQuestion {
  readonly billingAccountId: string
  /** Whose requests are counted: tags are an organization's own. */
  readonly organizationIds: readonly string[]
  readonly startMs: number
  readonly endMs: number
  readonly tag: string
  /** Most rows: callers choose the values, and may give each request one of its own. */
  readonly limit: number
}

export async function sumSpendByTag(engine: EventEngine, question: TagSpendQuestion): Promise<TagSpend[]> {
  const { dialect } = engine
  const writer = new StatementWriter(dialect)
  const { billingAccountId, organizationIds, startMs, endMs, tag, limit } = question
  const text = `
SELECT day, value, CAST(sum(cost_ticks) AS VARCHAR) AS ticks
FROM (
  SELECT ${dialect.dayNumber("timestamp")} AS day, ${keyOf(`tag:${tag}`, dialect, writer)} AS value, cost_ticks
  FROM ${dialect.table}
  WHERE billing_account_id = ${writer.text(billingAccountId)} AND cost_ticks > 0
    AND ${dialect.isOneOf("organization_id", writer.texts(organizationIds))}
    AND timestamp >= ${writer.integer(startMs)} AND timestamp < ${writer.integer(endMs)}
) AS charged
GROUP BY day, value
ORDER BY day, value
LIMIT ${Math.trunc(limit)}`
  return TagSpend.readAll(await engine.query(writer.finish(text)))
}

function excerptOf({ organizationId, startMs, endMs }: Excerpt, writer: StatementWriter): string {
  const range = `timestamp >= ${writer.integer(startMs)} AND timestamp < ${writer.integer(endMs)}`
  return organizationId === undefined
    ? range
    : `organization_id = ${writer.text(organizationId)} AND ${range}`
}

const Holdings = row({
  events: column.integer,
  oldestMs: column.integer.nullable(),
  newestMs: column.integer.nullable(),
})
export type Holdings = RowOf<typeof Holdings>

export async function holdings(engine: EventEngine): Promise<Holdings> {
  const writer = new StatementWriter(engine.dialect)
  const text = `SELECT count(*) AS events, min(timestamp) AS oldest_ms, max(timestamp) AS newest_ms FROM ${engine.dialect.table}`
  const [found] = Holdings.readAll(await engine.query(writer.finish(text)))
  // ClickHouse answers 0 for the minimum of nothing.
  return found && found.events > 0 ? found : { events: 0, oldestMs: null, newestMs: null }
}
