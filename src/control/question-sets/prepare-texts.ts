/** Before the transaction, which holds an embedded database: texts are hashed and encrypted while others have their turns. */
import { nextTurn } from "../../base/next-turn.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import { type PlacedText, sealInput } from "../../store/question-sets/examples.ts"
import type { QuestionSet } from "../../store/question-sets/sets.ts"
import { notFound } from "../audited-change.ts"
import type { QuestionSetDeps } from "./content.ts"

export type PreparedText<Row> = Row & { readonly hash: string; readonly stored: PlacedText }

/** Some milliseconds of work, also with the longest texts. */
const preparedBytesPerTurn = 256 * 1024

export async function prepareTexts<Row extends { readonly input: string }>(
  { ids, content }: QuestionSetDeps,
  given: {
    readonly rows: readonly Row[]
    readonly setId: string
    readonly idPrefix: "ex" | "case"
    readonly signal: AbortSignal
  },
): Promise<PreparedText<Row>[]> {
  const { rows, setId, idPrefix, signal } = given
  const prepared: PreparedText<Row>[] = []
  let sinceTurn = 0
  for (const row of rows) {
    const place = { id: ids.next(idPrefix), setId }
    const stored = { ...place, ...sealInput(content.cipher, place, row.input) }
    prepared.push({ ...row, hash: rowHash(row.input), stored })
    sinceTurn += row.input.length + perTextBytes
    if (sinceTurn < preparedBytesPerTurn) continue
    sinceTurn = 0
    await nextTurn()
    signal.throwIfAborted()
  }
  return prepared
}

/** What a short text costs beside its bytes, in bytes. */
const perTextBytes = 2048

/** A set that was deleted meanwhile may have a successor of the same name, for which the texts are not encrypted. */
export function checkSame(set: QuestionSet, preparedFor: string): void {
  if (set.id !== preparedFor) throw notFound("question set")
}
