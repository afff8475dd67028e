/** Why rows failed: each error once, with how many rows it took. */
import type { ResultLine } from "../batches/result-lines.ts"

export interface RowError {
  readonly code: string
  readonly message: string
  readonly rows: number
  /** The record of one of their requests; null where none was run. */
  readonly sequenceId: string | null
}

type Failed = Pick<ResultLine, "error" | "sequenceId">

/** The most frequent first. */
export function rowErrors(lines: readonly Failed[]): RowError[] {
  const found = new Map<string, RowError>()
  for (const { error, sequenceId } of lines) {
    if (!error) continue
    const before = found.get(error.message)
    found.set(error.message, {
      ...error,
      rows: (before?.rows ?? 0) + 1,
      sequenceId: before?.sequenceId ?? sequenceId,
    })
  }
  return [...found.values()].toSorted((a, b) => b.rows - a.rows)
}
