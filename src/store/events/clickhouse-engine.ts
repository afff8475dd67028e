/** The events in a ClickHouse server, through its own client. */
import { createWriteStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createClient } from "@clickhouse/client"
import { clickhouseDialect, clickhousePrune, clickhouseSchema } from "./clickhouse-dialect.ts"
import { clickhouseColumns, clickhouseFormat, encodeRows } from "./clickhouse-rows.ts"
import { type EventEngine, EventEngineError, type Statement, statementMaxMs } from "./engine.ts"

const connectionsMax = 4
const requestMaxMs = 2 * statementMaxMs

/** The address names user, password and database: `http://user:password@host:8123/database`. */
export async function openClickhouse(url: string): Promise<EventEngine> {
  const client = createClient({
    url,
    application: "umpire",
    max_open_connections: connectionsMax,
    request_timeout: requestMaxMs,
    compression: { request: false, response: false },
  })
  for (const query of clickhouseSchema) await client.command({ query })
  const query = async <Row extends object>({ text, values }: Statement): Promise<Row[]> => {
    const result = await client.query({ query: text, query_params: { ...values }, format: "JSONEachRow" })
    return await result.json<Row>()
  }
  return {
    dialect: clickhouseDialect,
    query,
    insert: async (rows, { token }) => {
      if (rows.length === 0) return
      const { stream } = await client.exec({
        query: `INSERT INTO sequences (${clickhouseColumns.join(", ")})
SETTINGS insert_deduplication_token = '${token.replaceAll(/[^\w:.-]/g, "_")}' FORMAT ${clickhouseFormat}`,
        values: Readable.from([encodeRows(rows)]),
      })
      stream.resume()
    },
    prune: async (beforeMs) => {
      const { months, rest } = clickhousePrune(beforeMs)
      for (const { partition } of await query<{ partition: string }>({ text: months, values: {} }))
        await client.command({ query: `ALTER TABLE sequences DROP PARTITION ${Number(partition)}` })
      await client.command({ query: rest })
    },
    writeParquet: async ({ text, values }, file) => {
      const { stream } = await client.exec({ query: `${text} FORMAT Parquet`, query_params: { ...values } })
      await pipeline(stream, createWriteStream(file))
    },
    copy: async () => {
      throw new EventEngineError("Cannot copy the events: ClickHouse keeps them; use its own backups")
    },
    close: async () => {
      await client.close()
    },
  }
}
