/** Why rows failed: each error once, with how many rows it took. */
import type { LineError, ResultLine } from "../batches/result-lines.ts"

/** With the request of one of the rows. */
export interface RowError extends LineError {
  readonly rows: number
}

type Failed = Pick<ResultLine, "error">

/** The most frequent first. */
export function rowErrors(lines: readonly Failed[]): RowError[] {
  const found = new Map<string, RowError>()
  for (const { error } of lines) {
    if (!error) continue
    const before = found.get(error.message)
    found.set(error.message, {
      ...error,
      rows: (before?.rows ?? 0) + 1,
      requestId: before?.requestId ?? error.requestId,
    })
  }
  return [...found.values()].toSorted((a, b) => b.rows - a.rows)
}
