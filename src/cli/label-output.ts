/** Writes the labelled rows of `umpire label`: a whole file beside its name, which then takes the name. */
import { createReadStream } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { pipeline } from "node:stream/promises"
import type { CliContext } from "./command.ts"
import type { TableFormat } from "./label-source.ts"
import { type LabelTable, literal } from "./label-table.ts"

const copyOptions: Readonly<Record<TableFormat, string>> = {
  csv: "FORMAT csv, HEADER",
  tsv: "FORMAT csv, HEADER, DELIMITER '\t'",
  jsonl: "FORMAT json",
  parquet: "FORMAT parquet, COMPRESSION zstd",
}

/** `statement` gives the rows in order. */
export async function writeOutput(
  table: LabelTable,
  statement: string,
  target: { readonly path: string; readonly format: TableFormat },
): Promise<void> {
  const { path, format } = target
  const part = `${path}.part`
  await rm(part, { force: true })
  await table.run(`COPY (${statement}) TO ${literal(part)} (${copyOptions[format]})`)
  const file = await open(part, "r+")
  await file.sync()
  await file.close()
  await rename(part, path)
}

export async function printOutput(context: CliContext, path: string): Promise<void> {
  await pipeline(createReadStream(path), context.stdout, { end: false })
  await rm(path, { force: true })
}
