/** The rows of `umpire label` as a sheet of an Excel file: whether they fit, and writing them. */
import { type DuckDBType, DuckDBTypeId, type DuckDBValue } from "@duckdb/node-api"
import { UsageError } from "./command.ts"
import { excelLimits } from "./excel-archive.ts"
import { type CellType, cellLengthMax, sheetColumnsMax, sheetRowsMax } from "./excel-cells.ts"
import { type ExcelPages, writeExcel } from "./excel-writer.ts"
import { type LabelTable, identifier } from "./label-table.ts"

/** Before anything is asked. What is written can also be read again. `added` columns come with the answers. */
export async function refuseLargeSheet(table: LabelTable, added: number): Promise<void> {
  const texts = table.columns.map((name) => `CAST(${identifier(name)} AS VARCHAR)`)
  const [[rows, bytes, ...lengths] = []] = await table.query(
    `SELECT count(*), ${texts.map((one) => `coalesce(sum(strlen(${one})), 0)`).join(" + ")}, ${texts.map(longest).join(", ")} FROM rows`,
  )
  const columns = table.columns.length + added
  refuseAbove(Number(rows) + 1, sheetRowsMax, "rows")
  refuseAbove(columns, sheetColumnsMax, "columns")
  refuseAbove(Number(rows) * columns, excelLimits.cellsMax, "cells")
  refuseAbove(Number(bytes), excelLimits.textLengthMax, "bytes of text")
  const long = lengths.findIndex((length) => Number(length) > cellLengthMax)
  if (long !== -1)
    throw new UsageError(
      `a text in the column ${table.columns[long]} has ${String(lengths[long])} characters; a cell of Excel has at most ${cellLengthMax}: name another format by --to or --out`,
    )
}

function refuseAbove(count: number, most: number, what: string): void {
  if (count > most)
    throw new UsageError(
      `an Excel file would have ${count} ${what}; at most ${most}: name another format by --to or --out`,
    )
}

/** In characters of UTF-16; 0 where even the bytes are few enough. */
const longest = (one: string): string =>
  `max(CASE WHEN strlen(${one}) > ${cellLengthMax}
     THEN length(${one}) + length(regexp_replace(${one}, '[^\\x{10000}-\\x{10FFFF}]', '', 'g')) ELSE 0 END)`

/** `statement` gives the rows in order. */
export async function writeSheet(table: LabelTable, statement: string, path: string): Promise<void> {
  const result = await table.connection.stream(statement)
  const types = result.columnTypes()
  const columns = result.columnNames().map((name, at) => ({ name, type: cellType(types[at]) }))
  await writeExcel(path, columns, asTexts(result.yieldRows()))
}

async function* asTexts(pages: AsyncIterable<readonly (readonly DuckDBValue[])[]>): ExcelPages {
  for await (const page of pages)
    yield page.map((row) => row.map((value) => (value === null ? null : String(value))))
}

/** What Excel has no type for is text, such as lists, documents and times with a zone. */
const cellTypes: Partial<Record<DuckDBTypeId, CellType>> = {
  [DuckDBTypeId.BOOLEAN]: "BOOLEAN",
  [DuckDBTypeId.TINYINT]: "BIGINT",
  [DuckDBTypeId.SMALLINT]: "BIGINT",
  [DuckDBTypeId.INTEGER]: "BIGINT",
  [DuckDBTypeId.BIGINT]: "BIGINT",
  [DuckDBTypeId.HUGEINT]: "BIGINT",
  [DuckDBTypeId.UTINYINT]: "BIGINT",
  [DuckDBTypeId.USMALLINT]: "BIGINT",
  [DuckDBTypeId.UINTEGER]: "BIGINT",
  [DuckDBTypeId.UBIGINT]: "BIGINT",
  [DuckDBTypeId.UHUGEINT]: "BIGINT",
  [DuckDBTypeId.DECIMAL]: "BIGINT",
  [DuckDBTypeId.FLOAT]: "DOUBLE",
  [DuckDBTypeId.DOUBLE]: "DOUBLE",
  [DuckDBTypeId.DATE]: "DATE",
  [DuckDBTypeId.TIMESTAMP]: "TIMESTAMP",
  [DuckDBTypeId.TIMESTAMP_S]: "TIMESTAMP",
  [DuckDBTypeId.TIMESTAMP_MS]: "TIMESTAMP",
  [DuckDBTypeId.TIMESTAMP_NS]: "TIMESTAMP",
  [DuckDBTypeId.TIME]: "TIME",
}

const cellType = (type: DuckDBType | undefined): CellType =>
  (type === undefined ? undefined : cellTypes[type.typeId]) ?? "VARCHAR"
