/** A dashboard's question as one statement, as someone who knows the engine would write it for this one question. */
import { type EventEngine, type Statement, StatementWriter } from "../src/store/events/engine.ts"
import { gridOf, type Question } from "../src/store/events/reports.ts"

export function seriesByHand({ dialect }: EventEngine, question: Question): Statement {
  const writer = new StatementWriter(dialect)
  const { bucket, value, where, table, key } = partsOf(dialect, question, writer)
  return writer.finish(`
WITH top AS (SELECT ${key} AS k FROM ${table} WHERE ${where} GROUP BY k ORDER BY ${value} DESC, k LIMIT ${question.limit})
SELECT ${bucket} AS b, CASE WHEN ${key} IN (SELECT k FROM top) THEN ${key} ELSE '' END AS s, ${value} AS v
FROM ${table} WHERE ${where}
GROUP BY b, s`)
}

export function overviewByHand({ dialect }: EventEngine, question: Question): Statement {
  const writer = new StatementWriter(dialect)
  const { bucket, value, where, table, key } = partsOf(dialect, question, writer)
  const latencies = dialect.percentiles("gateway_latency_ms", true)
  const sums = `sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(seq_duration_ms), ${latencies}`
  const failed = "count(*) FILTER (WHERE result = 'error')"
  const nothing = "0, 0, 0, 0, []"
  return writer.finish(`
SELECT 'all' AS what, '' AS k, count(*) AS n, ${failed} AS e, ${sums} FROM ${table} WHERE ${where}
UNION ALL
SELECT 'bucket', CAST(${bucket} AS VARCHAR) AS b, count(*), ${failed}, ${sums} FROM ${table} WHERE ${where} GROUP BY b
UNION ALL
SELECT 'status', result, count(*), 0, ${nothing} FROM ${table} WHERE ${where} GROUP BY result
UNION ALL
SELECT 'group', k, n, v, ${nothing} FROM (
  SELECT ${key} AS k, count(*) AS n, ${value} AS v FROM ${table} WHERE ${where} GROUP BY k ORDER BY v DESC, k LIMIT 50) AS g
UNION ALL
SELECT 'tool', k, n, 0, ${nothing} FROM (
  SELECT k, count(*) AS n FROM (SELECT ${dialect.unnest("tool_calls")} AS k FROM ${table} WHERE ${where}) AS t
  GROUP BY k ORDER BY n DESC, k LIMIT 50) AS g`)
}

function partsOf(dialect: EventEngine["dialect"], question: Question, writer: StatementWriter) {
  const { startMs, endMs } = question
  const { bucketMs } = gridOf(startMs, endMs, question.buckets)
  return {
    table: dialect.table,
    key: question.groupBy,
    bucket: dialect.quotient(`timestamp - ${startMs}`, String(bucketMs)),
    value: question.metric === "requests" ? "count(*)" : dialect.percentile(0.95, "gateway_latency_ms", true),
    where: `organization_id = ${writer.text(question.organizationId)} AND timestamp >= ${startMs} AND timestamp < ${endMs}`,
  }
}
