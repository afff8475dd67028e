/** What is done to the events beside taking them and answering: writing them to files, adding them up. */
import { type EventEngine, StatementWriter } from "./engine.ts"
import { columnNames } from "./event.ts"
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

/** What an account was charged on a day for requests with one value of a tag; "" for those without it. */
export interface TagSpend {
  /** Days since 1970. */
  readonly day: number
  readonly value: string
  /** Decimal text: sums pass 2^53. */
  readonly ticks: string
}

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
  return await engine.query<TagSpend>(writer.finish(text))
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
