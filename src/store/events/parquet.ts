/** Reads the files that `umpire analytics export` writes, of every version. */
import { open } from "node:fs/promises"
import { DuckDBInstance } from "@duckdb/node-api"
import { column } from "../rows.ts"
import { eventFrom } from "./batch.ts"
import { EventEngineError } from "./engine.ts"
import { addedColumnNames, columnNames, columns, type EventRow } from "./event.ts"

const magic = "PAR1"

export async function isParquet(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(magic.length), 0, magic.length, 0)
    return buffer.toString("latin1", 0, bytesRead) === magic
  } finally {
    await handle.close()
  }
}

/** In groups of some thousand. */
export async function* readParquet(file: string): AsyncGenerator<EventRow[]> {
  const instance = await DuckDBInstance.create(":memory:", {
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  })
  const connection = await instance.connect()
  try {
    // ClickHouse, which version 0.1 wrote with, does not say of bytes that they are text.
    const source = `read_parquet('${file.replaceAll("'", "''")}', binary_as_string = true)`
    const described = await connection.runAndReadAll(`SELECT column_name FROM (DESCRIBE FROM ${source})`)
    const present = new Set(column.text.readAll(described.getRowObjectsJS()))
    const missing = columnNames.find((name) => !present.has(name) && !isAdded(name))
    if (missing) throw new EventEngineError(`Cannot import the file: it has no column ${missing}`)
    const chosen = columnNames.filter((name) => present.has(name)).map(selected)
    const result = await connection.stream(`SELECT ${chosen.join(", ")} FROM ${source}`)
    for await (const rows of result.yieldRowObjectJs()) yield rows.map((row) => eventFrom(row))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

const isAdded = (name: keyof EventRow): boolean => addedColumnNames.some((added) => added === name)

function selected(name: keyof EventRow): string {
  switch (columns[name]) {
    case "text":
    case "name":
      return `coalesce(CAST(${name} AS VARCHAR), '') AS ${name}`
    case "texts":
      return `coalesce(CAST(${name} AS VARCHAR[]), []) AS ${name}`
    case "count":
    case "instant":
    case "ticks":
    case "known count":
      return `CAST(${name} AS BIGINT) AS ${name}`
    case "known ms":
      return `CAST(${name} AS DOUBLE) AS ${name}`
  }
}
