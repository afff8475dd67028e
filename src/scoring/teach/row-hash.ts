/** Hashes of labelled rows: a row is known by its text. */
import { createHash } from "node:crypto"
import type { TaughtRow } from "./question.ts"

/** White space around a text does not make it another example. */
export const rowHash = (evidence: string): string =>
  createHash("sha256").update(evidence.trim()).digest("hex")

/** Changes when a row or a label does, whatever the order of the rows. */
export function hashExamples(rows: readonly Pick<TaughtRow, "hash" | "label" | "isTeacher">[]): string {
  const lines = rows
    .map(({ hash, label, isTeacher }) => `${hash} ${label}${isTeacher ? " teacher" : ""}\n`)
    .toSorted()
  return createHash("sha256").update(lines.join("")).digest("hex")
}
