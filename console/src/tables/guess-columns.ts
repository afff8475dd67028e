/** Which columns of a table hold the text and the label, by their names; the user corrects it. */
import type { Rows } from "./rows.ts"

const named = ({ columns }: Rows, pattern: RegExp): string | undefined =>
  columns.find((name) => pattern.test(name))

export const guessLabel = (rows: Rows): string =>
  named(rows, /label|gold|answer|class|expected|target|category/i) ?? rows.columns.at(-1) ?? ""

/** Another column than the label. */
export function guessEvidence(rows: Rows, label: string | null): string {
  const others = { ...rows, columns: rows.columns.filter((name) => name !== label) }
  return named(others, /text|input|evidence|message|content|body|sentence|review/i) ?? others.columns[0] ?? ""
}
