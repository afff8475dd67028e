/** The labels of a column: which there are, and which differ in case only. */
import type { Row, Rows } from "../tables/rows.ts"

const spelled = (row: Row, column: string): string => row[column]?.trim() ?? ""
const folded = (label: string): string => label.normalize("NFC").toLowerCase()

/** How often each spelling occurs, by label without case. */
function spellings({ rows }: Rows, column: string): Map<string, Map<string, number>> {
  const groups = new Map<string, Map<string, number>>()
  for (const row of rows) {
    const label = spelled(row, column)
    if (label === "") continue
    const group = groups.get(folded(label)) ?? new Map<string, number>()
    groups.set(folded(label), group.set(label, (group.get(label) ?? 0) + 1))
  }
  return groups
}

/** Groups of labels that differ in case only, the most frequent spelling first. */
export function caseVariants(rows: Rows, column: string): string[][] {
  return [...spellings(rows, column).values()].filter((group) => group.size > 1).map(byFrequency)
}

const byFrequency = (group: ReadonlyMap<string, number>): string[] =>
  [...group].toSorted(([a, many], [b, more]) => more - many || (a < b ? -1 : 1)).map(([label]) => label)

/** The label of a row; where labels are folded, in the most frequent spelling of all rows. */
export function labelReader(rows: Rows, column: string, isFolded: boolean): (row: Row) => string {
  if (!isFolded) return (row) => spelled(row, column)
  const groups = spellings(rows, column)
  const first = new Map([...groups].map(([key, group]) => [key, byFrequency(group)[0] ?? ""]))
  return (row) => first.get(folded(spelled(row, column))) ?? ""
}

export function labelsOf(rows: Rows, column: string, isFolded: boolean): string[] {
  const labels = new Set(rows.rows.map(labelReader(rows, column, isFolded)))
  return [...labels].filter((label) => label !== "").toSorted()
}

export const sameLabel = (a: string, b: string, isFolded: boolean): boolean =>
  a === b || (isFolded && folded(a) === folded(b))
