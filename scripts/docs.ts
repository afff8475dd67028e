/** Writes the parts of the documentation that follow from the code: settings, error codes, and the OpenAPI document. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { configKeys, environmentOnly } from "../src/base/config.ts"
import { faultCatalog } from "../src/contract/errors.ts"
import { batchErrorCodes } from "../src/contract/openai/batches.ts"

const docs = join(import.meta.dirname, "..", "docs")

/** Each table stands between two marks in its page, so that the words around it are written by hand. */
export const generatedTables: Readonly<Record<string, () => string>> = {
  "configuration.md": settingsTable,
  "errors.md": errorsTable,
}

export function withTable(page: string, table: string): string {
  return page.replace(
    /<!-- table -->\n[\s\S]*?<!-- \/table -->/,
    () => `<!-- table -->\n${table}\n<!-- /table -->`,
  )
}

function settingsTable(): string {
  const rows = configKeys().map(
    ({ key, variable, meaning, fallback }) =>
      `| \`${key}\` | ${variable ? `\`${variable}\`` : ""} | ${shown(fallback)} | ${meaning} |`,
  )
  const only = Object.entries(environmentOnly).map(
    ([variable, meaning]) => `| | \`${variable}\` | | ${meaning} |`,
  )
  return ["| key | variable | default | meaning |", "| --- | --- | --- | --- |", ...rows, ...only].join("\n")
}

function errorsTable(): string {
  const rows = Object.entries(faultCatalog)
    .toSorted(([, a], [, b]) => a.status - b.status)
    .map(([code, { status, when }]) => `| ${status} | \`${code}\` | ${when} |`)
  const ofBatches = Object.entries(batchErrorCodes).map(([code, when]) => `| batch | \`${code}\` | ${when} |`)
  return ["| status | code | when |", "| --- | --- | --- |", ...rows, ...ofBatches].join("\n")
}

function shown(value: unknown): string {
  if (value === undefined || value === "") return ""
  return Array.isArray(value) && value.length === 0
    ? "none"
    : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const [name, table] of Object.entries(generatedTables)) {
    const path = join(docs, name)
    writeFileSync(path, withTable(readFileSync(path, "utf8"), table()))
  }
