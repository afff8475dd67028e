/** The events in chDB: ClickHouse inside the analytics process, on a directory of its own. */
import { rm } from "node:fs/promises"
import { Session } from "chdb"
import { clickhouseDialect, clickhousePrune, clickhouseSchema } from "./clickhouse-dialect.ts"
import { clickhouseColumns, clickhouseFormat, decodeRows, encodeRows } from "./clickhouse-rows.ts"
import type { EventEngine, Statement } from "./engine.ts"

const database = "umpire"

/**
 * Settings stand in the text of each statement: what is given to the library per call sticks to the session, and has
 * been seen to drop rows without a word.
 */
export async function openChdb(directory: string): Promise<EventEngine> {
  const session = new Session(directory)
  await session.queryAsync(`CREATE DATABASE IF NOT EXISTS ${database} ENGINE = Atomic`)
  await session.queryAsync(`USE ${database}`)
  await session.queryAsync(clickhouseSchema)
  const query = async <Row extends object>({ text, values }: Statement): Promise<Row[]> => {
    const result = await session.queryBindAsync(text, { ...values }, { format: "JSONEachRow" })
    return decodeRows<Row>(result.text())
  }
  return {
    dialect: clickhouseDialect,
    query,
    insert: async (rows, { token }) => {
      if (rows.length === 0) return
      await session.insert({
        table: `${database}.sequences`,
        columns: clickhouseColumns,
        values: encodeRows(rows),
        format: clickhouseFormat,
        settings: { insert_deduplication_token: token },
      })
    },
    prune: async (beforeMs) => {
      const { months, rest } = clickhousePrune(beforeMs)
      for (const { partition } of await query<{ partition: string }>({ text: months, values: {} }))
        await session.queryAsync(`ALTER TABLE sequences DROP PARTITION ${Number(partition)}`)
      await session.queryAsync(rest)
    },
    writeParquet: async ({ text, values }, file) => {
      await rm(file, { force: true })
      // A literal: a function's argument cannot be a parameter.
      const literal = `'${file.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
      await session.queryBindAsync(`INSERT INTO FUNCTION file(${literal}, 'Parquet') ${text}`, { ...values })
    },
    close: async () => {
      session.close()
    },
  }
}
